"""The `lab` part of a site file: how virtual nodes behave, beside what the site says of them."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, TypeVar

import msgspec

from haptera.lab.layout import BOOT_MS_MAX, DELAY_MS_MAX, LabNode
from haptera.lab.orders import GivenFaults
from haptera.model.errors import HapteraError
from haptera.selectors.nodeset import members

PLATFORM: Final = "labnode"
Given = TypeVar("Given")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that can be set: `refuse` gives each node-set the words in which its BMCs refuse.

    `bmc` gives each node-set all the ways in which its BMCs misbehave.
    Nodes of the second rack boot `delay_rack_ms` later than those of the first, and so on.
    """

    refuse: dict[str, str] = {}
    bmc: dict[str, GivenFaults] = {}
    delay_ms: Annotated[int, msgspec.Meta(ge=0, le=DELAY_MS_MAX)] = 300
    delay_rack_ms: Annotated[int, msgspec.Meta(ge=0, le=BOOT_MS_MAX)] = 0


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


def _read(settings: Mapping[str, object]) -> Settings:
    try:
        # A site file's values are texts, numbers among them.
        return msgspec.convert(dict(settings), Settings, strict=False)
    except msgspec.ValidationError as error:
        raise HapteraError(str(error), where="site file, lab") from error


def _each(given: Mapping[str, Given], nodes: Iterable[str], name: str) -> dict[str, Given]:
    """What is given for node-sets, by node; of two for one node the later."""
    found: dict[str, Given] = {}
    for pattern, what in given.items():
        for member in members(pattern):
            if member.name not in nodes:
                raise HapteraError(
                    f"there is no node {member.name} of platform {PLATFORM}",
                    where=f"site file, lab.{name}",
                    do="declare it under `nodes`",
                )
            found[member.name] = what
    return found


def _attribute(node: str, attributes: Mapping[str, str], name: str) -> str:
    if name not in attributes:
        raise HapteraError(f"has no {name}", where=f"node {node}", do=f"a {PLATFORM} needs one")
    return attributes[name]
