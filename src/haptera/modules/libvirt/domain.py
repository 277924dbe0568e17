"""One domain of libvirt, asked by virsh: one command at a time."""

from dataclasses import dataclass
from typing import Final

from haptera.modules import tool
from haptera.modules.power import PowerName, check_graceful
from haptera.sdk import HapteraError, Refused, Target

TOOL: Final = "virsh"
# It starts a QEMU meanwhile.
COMMAND_S_MAX: Final = 15.0
WORDS_MAX: Final = 300

# As virsh names states (virDomainState); a domain that has crashed still holds what it had.
_STATES: Final[dict[str, PowerName]] = {
    "running": "on",
    "idle": "on",
    "paused": "on",
    "in shutdown": "on",
    "pmsuspended": "on",
    "crashed": "on",
    "shut off": "off",
}


class LibvirtError(Exception):
    """libvirt does not answer, or does not know the domain."""


@dataclass(frozen=True, slots=True)
class LibvirtSettings:
    """Which libvirt keeps the machines. A machine has `graceful_s` to shut down before it ends."""

    uri: str = "qemu:///system"
    graceful_s: float = 30.0

    def __post_init__(self) -> None:
        check_graceful(self.graceful_s)


class LibvirtDomain:
    """The domain of one node; the daemon sees to it that only one call at a time is under way."""

    def __init__(self, target: Target) -> None:
        self._settings: LibvirtSettings = target.settings
        self._domain = _domain(target)
        self._from_network = False

    @property
    def address(self) -> str:
        return f"{self._settings.uri} {self._domain}"

    @property
    def graceful_s(self) -> float:
        return self._settings.graceful_s

    async def status(self) -> PowerName:
        state = (await self._run("domstate")).strip()
        if state not in _STATES:
            raise LibvirtError(f"domain {self._domain} is {state[:WORDS_MAX]!r}")
        return _STATES[state]

    async def boot_from_network_once(self) -> None:
        self._from_network = True

    async def power_on(self) -> None:
        from_network, self._from_network = self._from_network, False
        if from_network:
            # What is defined stays as it is: this holds until the domain is off again.
            definition = await self._run("dumpxml", "--inactive", "--security-info")
            await self._ask("create", "--file=/dev/stdin", given=network_first(definition))
        else:
            await self._run("start")

    async def ask_to_shut_down(self) -> bool:
        await self._run("shutdown", "--mode=acpi")
        return True

    async def force_off(self) -> None:
        await self._run("destroy")

    async def _run(self, verb: str, *words: str) -> str:
        return await self._ask(verb, f"--domain={self._domain}", *words)

    async def _ask(self, *words: str, given: str | None = None) -> str:
        """What virsh prints for these words.

        Raises:
            HapteraError: it is not installed.
            Refused: libvirt answered that it does not do it.
            LibvirtError: it did not answer in time, or does not know the domain.
        """
        command = [TOOL, "--quiet", f"--connect={self._settings.uri}", *words]
        try:
            ended = await tool.run(command, {}, within_s=COMMAND_S_MAX, given=given)
        except TimeoutError:
            raise LibvirtError(f"libvirt at {self._settings.uri} does not answer") from None
        if ended.status == 0:
            return ended.out
        said = ended.last_error.removeprefix("error: ")[:WORDS_MAX]
        if "failed to connect" in ended.errors or "Disconnected" in ended.errors:
            raise LibvirtError(f"libvirt at {self._settings.uri} does not answer: {said}")
        if words[0] == "domstate":
            raise LibvirtError(f"libvirt at {self._settings.uri}: {said}")
        raise Refused(said)


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
