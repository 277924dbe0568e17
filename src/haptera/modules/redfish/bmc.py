"""One BMC, asked over Redfish (DMTF DSP0266), and the one system behind it that is the node."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

import msgspec

from haptera.modules.effects import LackingError
from haptera.modules.power import PowerName, check_graceful
from haptera.modules.quirks import Quirk, quirks_by, quirks_of
from haptera.modules.redfish.connection import (
    RedfishConnection,
    RedfishError,
    ServiceAddress,
    Trust,
    end_sessions,
)
from haptera.sdk import HapteraError, HostPath, Refused, Secret, Setup, Target
from haptera.sdk.owned_files import owned

# How many BMCs are asked at once: each has a thread while it is.
AT_ONCE: Final = 32
SYSTEMS_PATH: Final = "/redfish/v1/Systems"
WORDS_MAX: Final = 300
# How long this process waits at its end for sessions to be ended.
END_S_MAX: Final = 3.0

# Kinds of reset (DSP2046, ResetType): what a BMC has of these is asked for, the first one first.
ON: Final = ("On", "ForceOn")
SHUT_DOWN: Final = ("GracefulShutdown",)
OFF: Final = ("ForceOff", "Off")
# What firmware loads from the network by: PXE, or HTTP of UEFI.
NETWORK: Final = ("Pxe", "UefiHttp")

_POWER: Final[dict[str | None, PowerName]] = {"On": "on", "Off": "off"}
_threads: Final = ThreadPoolExecutor(AT_ONCE, "redfish")

Shape = TypeVar("Shape")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class RedfishSettings:
    """Who asks all BMCs, and by what these are known.

    `auth` is `basic`: the password goes with each request; or `session`: it goes once, and opens
    a session.
    `trust` is `pinned`: the certificate that a BMC had when it was first asked is the one that it
    has to have ever after. It is `verified` where `ca_file`, or the system's list, vouches for it.
    A machine has `graceful_s` to shut down before its power is cut.
    """

    user: str
    password: Secret
    auth: Literal["basic", "session"] = "basic"
    trust: Literal["pinned", "verified"] = "pinned"
    ca_file: HostPath = HostPath("")
    graceful_s: float = 30.0

    def __post_init__(self) -> None:
        check_graceful(self.graceful_s)
        if self.ca_file and self.trust != "verified":
            raise ValueError("ca_file is for `trust: verified`")


class _Link(msgspec.Struct, frozen=True):
    path: str = msgspec.field(name="@odata.id")


class _Members(msgspec.Struct, frozen=True):
    members: list[_Link] = msgspec.field(name="Members")


class _Reset(msgspec.Struct, frozen=True):
    target: str
    allowed: list[str] = msgspec.field(name="ResetType@Redfish.AllowableValues", default=[])


class _Actions(msgspec.Struct, frozen=True):
    reset: _Reset | None = msgspec.field(name="#ComputerSystem.Reset", default=None)


class _Boot(msgspec.Struct, frozen=True):
    mode: str | None = msgspec.field(name="BootSourceOverrideMode", default=None)
    allowed: list[str] = msgspec.field(
        name="BootSourceOverrideTarget@Redfish.AllowableValues", default=[]
    )


class _System(msgspec.Struct, frozen=True):
    """Of a ComputerSystem (DSP2046) what matters here."""

    power: str | None = msgspec.field(name="PowerState", default=None)
    maker: str | None = msgspec.field(name="Manufacturer", default=None)
    actions: _Actions = msgspec.field(name="Actions", default=_Actions())
    boot: _Boot = msgspec.field(name="Boot", default=_Boot())


@asynccontextmanager
async def sessions(_setup: Setup) -> AsyncIterator[None]:
    """None is left behind at any BMC, which has room for few."""
    try:
        yield
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S_MAX):
                await asyncio.get_running_loop().run_in_executor(_threads, end_sessions)


class RedfishBmc:
    """The BMC of one node; the daemon sees to it that only one call at a time is under way."""

    def __init__(self, target: Target) -> None:
        settings: RedfishSettings = target.settings
        self.address = target.attributes.get("bmc") or ""
        self.graceful_s = settings.graceful_s
        self._settings = settings
        self._service = _service(target, self.address)
        self._quirks = quirks_of(target)
        self._trust = Trust(
            owned(settings.ca_file) if settings.ca_file else None,
            target.run_dir / f"{target.name}.pin" if settings.trust == "pinned" else None,
        )

    async def status(self) -> PowerName:
        return await self._ask(self._status)

    async def boot_from_network_once(self) -> None:
        await self._ask(self._boot_from_network_once)

    async def power_on(self) -> None:
        await self._ask(lambda connection: self._reset(connection, ON))

    async def ask_to_shut_down(self) -> bool:
        return await self._ask(self._shut_down)

    async def force_off(self) -> None:
        await self._ask(lambda connection: self._reset(connection, OFF))

    async def _ask(self, work: Callable[[RedfishConnection], Done]) -> Done:
        def run() -> Done:
            settings = self._settings
            credentials = (settings.user, str(settings.password))
            connection = RedfishConnection(
                self._service, self._trust, credentials, in_session=settings.auth == "session"
            )
            with connection:
                return work(connection)

        return await asyncio.get_running_loop().run_in_executor(_threads, run)

    # In a thread

    def _status(self, connection: RedfishConnection) -> PowerName:
        system = self._system(connection)
        if system.power not in _POWER:
            raise RedfishError(f"BMC at {self.address} says its power is {system.power}")
        return _POWER[system.power]

    def _boot_from_network_once(self, connection: RedfishConnection) -> None:
        system = self._system(connection)
        source = _first(NETWORK, system.boot.allowed)
        if source is None:
            raise Refused(f"it can boot by {_listed(system.boot.allowed)}, not from the network")
        wish = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": source}
        if system.boot.mode and Quirk.BOOT_MODE in self._quirks | quirks_by(system.maker or ""):
            wish["BootSourceOverrideMode"] = system.boot.mode
        connection.ask("PATCH", self._path(connection), {"Boot": wish})

    def _shut_down(self, connection: RedfishConnection) -> bool:
        reset = self._system(connection).actions.reset
        knows = reset is not None and _first(SHUT_DOWN, reset.allowed) is not None
        if not knows or Quirk.NO_SHUTDOWN in self._quirks:
            return False
        try:
            self._reset(connection, SHUT_DOWN)
        except LackingError:
            return False
        return True

    def _reset(self, connection: RedfishConnection, wanted: Sequence[str]) -> None:
        reset = self._system(connection).actions.reset
        if reset is None:
            raise Refused("it has no action ComputerSystem.Reset")
        kind = _first(wanted, reset.allowed)
        if kind is None:
            raise Refused(f"it knows resets {_listed(reset.allowed)}, none of {_listed(wanted)}")
        connection.ask("POST", reset.target, {"ResetType": kind})

    def _system(self, connection: RedfishConnection) -> _System:
        return self._decoded(connection.ask("GET", self._path(connection)), _System)

    def _path(self, connection: RedfishConnection) -> str:
        """Where the node's system is: as its attribute says, or the only one that there is."""
        if self._service.path:
            return self._service.path
        found = self._decoded(connection.ask("GET", SYSTEMS_PATH), _Members).members
        if len(found) != 1:
            raise HapteraError(
                f"BMC at {self.address} has {len(found)} systems",
                do=f"name one: bmc: {replace(self._service, path=SYSTEMS_PATH)}/ID",
            )
        return found[0].path

    def _decoded(self, content: bytes, shape: type[Shape]) -> Shape:
        try:
            return msgspec.json.decode(content, type=shape)
        except (msgspec.DecodeError, RecursionError) as error:
            raise RedfishError(f"BMC at {self.address} is not a Redfish service: {error}") from None


def _service(target: Target, address: str) -> ServiceAddress:
    if not address:
        do = "give `bmc: ADDRESS`, ADDRESS:PORT, or either with the path of a system"
        raise HapteraError("has no attribute bmc", where=str(target.entity), do=do)
    return ServiceAddress.parse(address)


def _first(wanted: Sequence[str], allowed: Sequence[str]) -> str | None:
    """The first that the BMC has; where it tells none, the first that is wanted."""
    return next((one for one in wanted if not allowed or one in allowed), None)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)[:WORDS_MAX] or "nothing that it tells"
