"""Offers where there is no chain: modules that are known, but not used by the site."""

from collections.abc import Iterable, Mapping

from haptera.kinds import node
from haptera.model.chain import Reason, ReasonKind
from haptera.model.parts import Look, Manifest, Part
from haptera.planner.reasons.achievers import leads

_NODE = f"{node.kind.name}."


def offers(
    kind: str, goal: Mapping[str, str], reason: Reason, absent: Iterable[Manifest]
) -> list[str]:
    """In words, by which parts these modules lead to what is missing."""
    missing = sorted(_missing(goal, reason))
    return [
        f"module {one.name} {_would(part, name, value)}: add it to the site's modules"
        for one in absent
        for name, value in missing
        for part in one.parts
        if _is_of(part, kind, name) and leads(part, name.removeprefix(_NODE), (value,))
    ]


def _missing(goal: Mapping[str, str], reason: Reason) -> Iterable[tuple[str, str]]:
    """The values that would let it go on."""
    match reason.kind:
        case ReasonKind.UNKNOWABLE_GOAL | ReasonKind.NO_STEP:
            return [one for one in goal.items() if one[0] == reason.variable]
        case ReasonKind.WAITS:
            return reason.waits_for
        case ReasonKind.BLOCKED:
            return reason.wants
        case ReasonKind.NO_PROGRESS | ReasonKind.BUDGET:
            return ()


def _is_of(part: Part, kind: str, name: str) -> bool:
    """Whether the part is of the kind whose variable this is: of the entity's, or its node's."""
    return part.kind == (node.kind.name if name.startswith(_NODE) else kind)


def _would(part: Part, name: str, value: str) -> str:
    if isinstance(part, Look):
        return f"would look at {name} ({part.path})"
    return f"would lead to {name}={value} ({part.path})"
