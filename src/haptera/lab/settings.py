"""The `lab` part of a site file: how virtual nodes behave, beside what the site says of them."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from haptera.lab.layout import BOOT_MS_MAX, DELAY_MS_MAX, LabNode
from haptera.model.errors import HapteraError
from haptera.model.nodeset import members

PLATFORM: Final = "labnode"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that can be set: `refuse` gives each node-set the words in which its BMCs refuse.

    Nodes of the second rack boot `delay_rack_ms` later than those of the first, and so on.
    """

    refuse: dict[str, str] = {}
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
    refusals = _refusals(read, own)
    racks = list(dict.fromkeys(one.get("rack") for one in own.values()))
    return tuple(
        LabNode(
            name,
            _given(name, one, "address"),
            _given(name, one, "bmc"),
            delay_ms=read.delay_ms,
            boot_ms=read.delay_rack_ms * racks.index(one.get("rack")),
            refuse=refusals.get(name),
        )
        for name, one in own.items()
    )


def _read(settings: Mapping[str, object]) -> Settings:
    try:
        # A site file's values are texts, numbers among them.
        return msgspec.convert(dict(settings), Settings, strict=False)
    except msgspec.ValidationError as error:
        raise HapteraError(str(error), where="site file, lab") from error


def _refusals(settings: Settings, nodes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pattern, text in settings.refuse.items():
        for member in members(pattern):
            if member.name not in nodes:
                raise HapteraError(
                    f"there is no node {member.name} of platform {PLATFORM}",
                    where="site file, lab.refuse",
                    do="declare it under `nodes`",
                )
            found[member.name] = text
    return found


def _given(node: str, attributes: Mapping[str, str], name: str) -> str:
    if name not in attributes:
        raise HapteraError(f"has no {name}", where=f"node {node}", do=f"a {PLATFORM} needs one")
    return attributes[name]
