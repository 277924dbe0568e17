"""One domain of libvirt, asked by virsh: one command at a time."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from haptera.modules import recorders
from haptera.modules.console import ConsoleRecord
from haptera.modules.effects import DeviceError
from haptera.modules.power import PowerName, Statuses, check_graceful
from haptera.modules.terminal import record_terminal
from haptera.sdk import Command, EntityId, HapteraError, Refused, Target
from haptera.sdk.commands import Program

TOOL: Final = "virsh"
# It starts a QEMU meanwhile.
COMMAND_S_MAX: Final = 15.0
WORDS_MAX: Final = 300
_ERROR: Final = b"error: "

# As virsh names states, in the order of their numbers (virDomainState, from 1 on); a domain that
# has crashed still holds what it had.
_STATES: Final[dict[str, PowerName]] = {
    "running": "on",
    "idle": "on",
    "paused": "on",
    "in shutdown": "on",
    "shut off": "off",
    "crashed": "on",
    "pmsuspended": "on",
}
_NUMBERS: Final = {str(number): power for number, power in enumerate(_STATES.values(), 1)}
_STATISTICS: Final = re.compile(r"^Domain: '(.*)'\n  state\.state=(\d+)$", re.MULTILINE)


class LibvirtError(DeviceError):
    """libvirt does not answer, or does not know the domain."""


@dataclass(frozen=True, slots=True)
class LibvirtSettings:
    """Which libvirt keeps the machines; a `uri` may name a command that leads there.

    A machine has `graceful_s` to shut down before it ends. To record consoles takes a process for
    each node.
    """

    uri: Command = Command("qemu:///system")
    graceful_s: float = 30.0
    record_consoles: bool = False

    def __post_init__(self) -> None:
        check_graceful(self.graceful_s)


def connect(target: Target) -> "LibvirtDomain":
    """The domain of a node; from now on its console is recorded, if consoles are."""
    domain = LibvirtDomain(target)
    recorders.keep(target, domain.address, domain.record_session)
    return domain


async def statuses(domains: Mapping[EntityId, "LibvirtDomain"]) -> Statuses:
    """The power of each, by one list of all that libvirt has."""
    listed = await next(iter(domains.values())).listed()
    return {
        one: listed.get(domain.name) or LibvirtError(f"libvirt tells no power of {domain.name!r}")
        for one, domain in domains.items()
    }


class LibvirtDomain:
    """The domain of one node; the daemon sees to it that only one call at a time is under way."""

    def __init__(self, target: Target) -> None:
        self._settings: LibvirtSettings = target.settings
        self._target = target
        self.name = _domain(target)
        self._from_network = False

    @property
    def address(self) -> str:
        return f"{self._settings.uri} {self.name}"

    @property
    def graceful_s(self) -> float:
        return self._settings.graceful_s

    async def status(self) -> PowerName:
        state = (await self._run("domstate")).strip()
        if state not in _STATES:
            raise LibvirtError(f"domain {self.name} is {state[:WORDS_MAX]!r}")
        return _STATES[state]

    async def listed(self) -> Mapping[str, PowerName]:
        """The power of all domains of its libvirt, by their names."""
        printed = await self._ask("domstats", "--state")
        found = _STATISTICS.findall(printed)
        return {name: _NUMBERS[number] for name, number in found if number in _NUMBERS}

    async def boot_from_network_once(self) -> None:
        self._from_network = True

    async def power_on(self) -> None:
        from_network, self._from_network = self._from_network, False
        if from_network:
            # What is defined stays as it is: this holds until the domain is off again.
            definition = await self._run("dumpxml", "--inactive", "--security-info")
            await self._ask("create", "--file=/dev/stdin", given=network_first(definition).encode())
        else:
            await self._run("start")
        recorders.begin(self._target)

    async def ask_to_shut_down(self) -> bool:
        await self._run("shutdown", "--mode=acpi")
        return True

    async def force_off(self) -> None:
        await self._run("destroy")

    async def record_session(self, record: ConsoleRecord) -> None:
        """Record what the domain sends to its console, until it is off.

        Raises:
            HapteraError: virsh is not installed.
            ConsoleError: there is no session: the domain is off, or another's reads it.
            OSError: the record cannot be written.
        """
        words = self._words("console", f"--domain={self.name}", "--safe")
        await record_terminal(Program(words), opened, record)

    async def _run(self, verb: str, *words: str) -> str:
        return await self._ask(verb, f"--domain={self.name}", *words)

    def _words(self, *words: str) -> list[str]:
        return [TOOL, "--quiet", f"--connect={self._settings.uri}", *words]

    async def _ask(self, *words: str, given: bytes | None = None) -> str:
        """What virsh prints for these words.

        Raises:
            HapteraError: it is not installed.
            Refused: libvirt answered that it does not do it.
            LibvirtError: it did not answer in time, or does not know the domain.
        """
        try:
            ended = await Program(self._words(*words), given=given).run(COMMAND_S_MAX)
        except TimeoutError:
            raise LibvirtError(f"libvirt at {self._settings.uri} does not answer") from None
        if ended.status == 0:
            return ended.out
        said = ended.last_error.removeprefix("error: ")[:WORDS_MAX]
        if "failed to connect" in ended.errors or "Disconnected" in ended.errors:
            raise LibvirtError(f"libvirt at {self._settings.uri} does not answer: {said}")
        if words[0] in ("domstate", "domstats"):
            raise LibvirtError(f"libvirt at {self._settings.uri}: {said}")
        raise Refused(said)


def opened(words: bytes) -> bytes | None:
    """All that virsh prints, but for its own words where there is no session.

    >>> opened(b"it boots")
    b'it boots'
    >>> opened(b"error: The domain is not running")
    """
    # A console that begins with the same is waited for: its next session has it.
    return words if words and not _ERROR.startswith(words[: len(_ERROR)]) else None


def network_first(definition: str) -> str:
    """The definition of a domain that boots by its first card, then as it did before.

    >>> network_first("<domain><os><boot dev='hd'/></os></domain>")
    '<domain><os><boot dev="network" /><boot dev="hd" /></os></domain>'

    Raises:
        LibvirtError: it is no definition, or of a domain without a card.
    """
    # Not at the top: nodes know the module, too, and a minOS has no XML.
    from xml.etree import ElementTree as Xml

    try:
        domain = Xml.fromstring(definition)
        order = [(int(boot.get("order", "")), boot) for boot in domain.findall("devices/*/boot")]
    except (Xml.ParseError, ValueError) as error:
        raise LibvirtError(f"what virsh prints is no definition of a domain: {error}") from None
    card, system = domain.find("devices/interface"), domain.find("os")
    if order and card is not None:
        # By device, which excludes an order by kind.
        first = card.find("boot")
        if first is None:
            first = Xml.SubElement(card, "boot")
        rest = [boot for _, boot in sorted(order, key=lambda one: one[0]) if boot is not first]
        for place, boot in enumerate([first, *rest], 1):
            boot.set("order", str(place))
    elif not order and system is not None:
        rest = [boot for boot in system.findall("boot") if boot.get("dev") != "network"]
        for boot in system.findall("boot"):
            system.remove(boot)
        system.extend([Xml.Element("boot", dev="network"), *rest])
    else:
        raise LibvirtError("the domain has no network card")
    return Xml.tostring(domain, "unicode")


def _domain(target: Target) -> str:
    """As the node's attribute says, or its own name."""
    name = target.attributes.get("bmc", target.name)
    if name.isdigit():
        do = "write `bmc: NAME`, or rename the domain"
        what = f"domain {name}: virsh takes a number for that of a domain which runs"
        raise HapteraError(what, where=str(target.entity), do=do)
    return name
