"""One BMC, asked by ipmitool: one command at a time, the password never among its arguments."""

import asyncio
from dataclasses import asdict, dataclass
from typing import Final, Literal
from weakref import WeakValueDictionary

import msgspec

from haptera.kinds import node
from haptera.kinds.host_port import HostPort
from haptera.modules.bmc_sensors import check_every
from haptera.modules.effects import DeviceError, LackingError, LoginError
from haptera.modules.ipmi.answers import failure, fields_of
from haptera.modules.patience import Patience
from haptera.modules.power import PowerName, check_graceful
from haptera.modules.quirks import Quirk, quirks_of
from haptera.modules.survey import BmcSurvey
from haptera.sdk import HapteraError, Secret, Target
from haptera.sdk.commands import Program, clean

TOOL: Final = "ipmitool"
DEFAULT_PORT: Final = 623
# Past this a BMC, or ipmitool itself, hangs: a session takes up to six exchanges.
COMMAND_S_MAX: Final = 8.0
# How long ipmitool waits for one answer, and how often it asks: as long as we wait for it.
ANSWER_S: Final = 1
TRIES_MAX: Final = int(COMMAND_S_MAX) // ANSWER_S
WORDS_MAX: Final = 300
CIPHER_SUITE_MAX: Final = 17
_OWN: Final = {
    "cipher_suite": node.bmc_cipher_suite,
    "interface": node.bmc_interface,
    "privilege": node.bmc_privilege,
}
# IPMI 2.0 has no longer ones.
PASSWORD_BYTES_MAX: Final = 20

_ANSWERS: Final[dict[str, PowerName]] = {
    "Chassis Power is on": "on",
    "Chassis Power is off": "off",
}
_patience: Final = Patience()
# Of BMCs that are in use, by their addresses.
_locks: Final = WeakValueDictionary[str, asyncio.Lock]()


Interface = Literal["lanplus", "lan"]
Privilege = Literal["administrator", "operator", "user"]


@dataclass(frozen=True, slots=True)
class IpmiSettings:
    """Who asks all BMCs. Old BMCs need `cipher_suite` 3; 17 uses SHA-256.

    `privilege` is what a session asks for: `user` may read only. `interface` is `lan` for BMCs
    that have IPMI 1.5 only. A node may have its own of these three, by its attributes.
    A machine has `graceful_s` to shut down before its power is cut. To record consoles takes a
    process for each node. Sensors and the event log are read each `sensors_every_s`.
    """

    user: str
    password: Secret
    cipher_suite: int = 17
    privilege: Privilege = "administrator"
    interface: Interface = "lanplus"
    graceful_s: float = 30.0
    record_consoles: bool = False
    sensors_every_s: float = 30.0

    def __post_init__(self) -> None:
        if len(self.password.encode()) > PASSWORD_BYTES_MAX:
            raise ValueError(f"an IPMI password has at most {PASSWORD_BYTES_MAX} bytes")
        if not 1 <= self.cipher_suite <= CIPHER_SUITE_MAX:
            # Suite 0 lets everybody in.
            raise ValueError(f"cipher_suite is between 1 and {CIPHER_SUITE_MAX}")
        check_graceful(self.graceful_s)
        check_every(self.sensors_every_s)


class IpmiBmc:
    """The BMC of one node; it is asked one thing at a time, by calls and samplers together."""

    def __init__(self, target: Target) -> None:
        self._settings = _settings(target)
        self._credentials = (self._settings.user, str(self._settings.password))
        self._at = _address(target)
        self.address = str(self._at)
        self._quirks = quirks_of(target)
        self.sensors_every_s = self._settings.sensors_every_s
        # Where what it says of its sensors is kept.
        self.home = target.run_dir / target.name
        self._one_at_a_time = _locks.setdefault(self.address, asyncio.Lock())

    @property
    def is_asked(self) -> bool:
        """True while a command is under way."""
        return self._one_at_a_time.locked()

    @property
    def graceful_s(self) -> float:
        return self._settings.graceful_s

    async def status(self) -> PowerName:
        answer = (await self.run("chassis", "power", "status")).strip()
        if answer not in _ANSWERS:
            raise DeviceError(
                f"BMC at {self.address} reports no power state: {answer[:WORDS_MAX]!r}"
            )
        return _ANSWERS[answer]

    async def boot_from_network_once(self) -> None:
        options = ["options=efiboot"] if Quirk.UEFI_BOOT in self._quirks else []
        await self.run("chassis", "bootdev", "pxe", *options)

    async def power_on(self) -> None:
        await self.run("chassis", "power", "on")

    async def ask_to_shut_down(self) -> bool:
        if Quirk.NO_SHUTDOWN in self._quirks:
            return False
        try:
            await self.run("chassis", "power", "soft")
        except LackingError:  # IPMI leaves it to a BMC whether it has this.
            return False
        return True

    async def force_off(self) -> None:
        await self.run("chassis", "power", "off")

    async def survey(self) -> BmcSurvey:
        """What it says of itself, with the quirks that haptera heeds."""
        now = asyncio.get_running_loop().time
        began = now()
        power = await self.status()
        latency_s = now() - began
        said = fields_of(await self.run("mc", "info"))
        sessions = fields_of(await self.run("session", "info", "active"))
        held, places = sessions.get("active sessions"), sessions.get("slot count")
        return BmcSurvey(
            power=power,
            maker=said.get("Manufacturer Name"),
            model=said.get("Product Name"),
            firmware=said.get("Firmware Revision"),
            resets=(),  # IPMI has no list of them, and none of what a machine boots from.
            boot_sources=(),
            sessions=f"{held} of {places} open" if held and places else None,
            quirks=sorted(self._quirks),
            latency_s=latency_s,
        )

    def check_patience(self) -> None:
        """Ask whether the BMC may be asked.

        Raises:
            LoginError: it refused the login, and is left alone for a while.
        """
        now = asyncio.get_running_loop().time()
        _patience.check(self.address, self._credentials, now)

    def program(self, *words: str) -> Program:
        """An ipmitool with these words."""
        at, settings = self._at, self._settings
        arguments = ["-I", settings.interface, "-C", str(settings.cipher_suite)]
        arguments += ["-L", settings.privilege.upper(), "-H", at.host, "-p", str(at.port)]
        arguments += ["-U", settings.user, "-E", "-N", str(ANSWER_S), "-R", str(TRIES_MAX)]
        return Program([TOOL, *arguments, *words], clean(IPMI_PASSWORD=settings.password))

    async def run(self, *words: str, within_s: float = COMMAND_S_MAX) -> str:
        """What ipmitool prints for these words.

        Raises:
            Refused: the BMC answered that it does not do it, or not now.
            DeviceError: it did not answer, in time or in a way that can be understood.
        """
        bmc = f"BMC at {self.address}"
        self.check_patience()
        try:
            # The first `-v` says why no session came about, and nothing else that matters.
            async with self._one_at_a_time:
                ended = await self.program("-v", *words).run(within_s)
        except TimeoutError:
            raise DeviceError(f"{bmc} does not answer") from None
        if ended.status == 0:
            _patience.answered(self.address)
            return ended.out
        error = failure(bmc, ended.errors)
        if isinstance(error, LoginError):
            now = asyncio.get_running_loop().time()
            _patience.refused(self.address, self._credentials, error, now)
        raise error


def _settings(target: Target) -> IpmiSettings:
    """The module's settings, with what the node has of its own.

    Raises:
        HapteraError: it has something that there is not.
    """
    own = {
        name: target.attributes[attribute.name]
        for name, attribute in _OWN.items()
        if attribute.name in target.attributes
    }
    try:
        return msgspec.convert({**asdict(target.settings), **own}, IpmiSettings, strict=False)
    except msgspec.ValidationError as error:
        what = ", ".join(f"{_OWN[name].name}: {text}" for name, text in own.items())
        do = "bmc_interface is lanplus or lan, bmc_privilege administrator, operator or user"
        raise HapteraError(f"{what}: {error}", where=str(target.entity), do=do) from None


def _address(target: Target) -> HostPort:
    """Where it is, by the node's attribute."""
    address = target.attributes.get("bmc")
    if address is None:
        do = "give `bmc: ADDRESS`, or ADDRESS:PORT"
        raise HapteraError("has no attribute bmc", where=str(target.entity), do=do)
    return HostPort.parse(address, DEFAULT_PORT)
