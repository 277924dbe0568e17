"""The `lab` part of a site file: how virtual nodes behave, beside what the site says of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, TypeVar

import msgspec

from haptera.lab.bridge import Bridge
from haptera.lab.layout import BOOT_MS_MAX, DELAY_MS_MAX, LabMachine, LabNode
from haptera.lab.machine_bmc import Language, Nic
from haptera.lab.orders import CloudFaults, GivenFaults
from haptera.model.errors import Code, HapteraError, ParseError
from haptera.selectors.nodeset import members

PLATFORM: Final = "labnode"
# Of these platforms a lab makes virtual machines, where it has a bridge for them.
MACHINES: Final = tuple(Language)
Given = TypeVar("Given")


class BridgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where virtual machines boot: a bridge, and the parent's address there as ADDRESS/BITS."""

    address: str
    interface: str = "br0"


class LabSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that can be set: `refuse` gives each node-set the words in which its BMCs refuse.

    `bmc` gives each node-set all the ways in which its BMCs misbehave.
    With a `bridge`, nodes of platform ipmi or redfish are virtual machines of `memory_mb`; those
    of the node-set `uefi` have UEFI for firmware, the others a BIOS. `macs` has the network cards
    of those without one in the site: they are unclaimed. `nic` gives node-sets a card of
    another make.
    With a `cloud`, even an empty one, the lab makes nodes on demand; it says how that misbehaves.
    Nodes of the second rack boot `delay_rack_ms` later than those of the first, and so on.
    """

    refuse: dict[str, str] = {}
    bmc: dict[str, GivenFaults] = {}
    delay_ms: Annotated[int, msgspec.Meta(ge=0, le=DELAY_MS_MAX)] = 300
    bridge: BridgeSettings | None = None
    memory_mb: int = 512
    uefi: str = ""
    macs: dict[str, str] = {}
    nic: dict[str, Nic] = {}
    delay_rack_ms: Annotated[int, msgspec.Meta(ge=0, le=BOOT_MS_MAX)] = 0
    cloud: CloudFaults | None = None


def lab_nodes(
    attributes: Mapping[str, Mapping[str, str]], settings: Mapping[str, object]
) -> tuple[LabNode, ...]:
    """The virtual nodes among those of a site: node names with their attributes, in its order.

    Raises:
        HapteraError: an attribute is missing, or the settings are not what they should be.
    """
    own = {name: one for name, one in attributes.items() if one.get("platform") == PLATFORM}
    read = _read(settings)
    refusals = _each(read.refuse, own, "refuse")
    faults = _each(read.bmc, own, "bmc")
    racks = list(dict.fromkeys(one.get("rack") for one in own.values()))
    return tuple(
        LabNode(
            name,
            _attribute(name, one, "address"),
            _attribute(name, one, "bmc"),
            delay_ms=read.delay_ms,
            boot_ms=read.delay_rack_ms * racks.index(one.get("rack")),
            refuse=refusals.get(name),
            faults=faults.get(name, GivenFaults()),
        )
        for name, one in own.items()
    )


def lab_bridge(settings: Mapping[str, object]) -> Bridge | None:
    """The bridge for virtual machines, where the site's lab has one.

    Raises:
        HapteraError: the settings are not what they should be.
    """
    said = _read(settings).bridge
    return None if said is None else Bridge.parse(said.interface, said.address)


def lab_cloud(settings: Mapping[str, object]) -> CloudFaults | None:
    """How the lab's cloud misbehaves, where the site's lab has one.

    Raises:
        HapteraError: the settings are not what they should be.
    """
    return _read(settings).cloud


def lab_machines(
    attributes: Mapping[str, Mapping[str, str]], settings: Mapping[str, object]
) -> tuple[LabMachine, ...]:
    """The virtual machines among the nodes of a site, in its order.

    Raises:
        HapteraError: an attribute is missing, or the settings are not what they should be.
    """
    read = _read(settings)
    if read.bridge is None:
        return ()
    own = {name: one for name, one in attributes.items() if one.get("platform") in MACHINES}
    uefi = _each({read.uefi: True} if read.uefi else {}, own, "uefi", MACHINES)
    cards = _each(read.macs, own, "macs", MACHINES)
    nics = _each(read.nic, own, "nic", MACHINES)
    return tuple(
        LabMachine(
            name,
            (cards.get(name) or _attribute(name, one, "mac")).lower(),
            _attribute(name, one, "bmc"),
            read.memory_mb,
            uefi=name in uefi,
            language=Language(one["platform"]),
            nic=nics.get(name, Nic.VIRTIO),
        )
        for name, one in own.items()
    )


def _read(settings: Mapping[str, object]) -> LabSettings:
    try:
        # A site file's values are texts, numbers among them.
        return msgspec.convert(dict(settings), LabSettings, strict=False)
    except msgspec.ValidationError as error:
        raise HapteraError(str(error), where="site file, lab") from error


def _each(
    given: Mapping[str, Given],
    nodes: Iterable[str],
    name: str,
    platforms: Sequence[str] = (PLATFORM,),
) -> dict[str, Given]:
    """What is given for node-sets, by node; of two for one node the later."""
    found: dict[str, Given] = {}
    for pattern, what in given.items():
        for member in members(pattern):
            if member.name not in nodes:
                raise ParseError(
                    f"there is no node {member.name} of platform {' or '.join(platforms)}",
                    where=f"site file, lab.{name}",
                    do="declare it under `nodes`",
                )
            found[member.name] = what
    return found


def _attribute(node: str, attributes: Mapping[str, str], name: str) -> str:
    if name not in attributes:
        raise HapteraError(
            f"has no {name}", where=f"node {node}", do="this platform needs one", code=Code.MISSING
        )
    return attributes[name]
