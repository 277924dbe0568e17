"""The status of a whole cluster in a few lines: entities of equal status share one."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.core.state.entity.stance import Stance
from haptera.kinds import node
from haptera.model.answers.reason_text import cause
from haptera.model.answers.views import AlikeView, Condition
from haptera.model.entity import EntityId
from haptera.planner.domain.pieces import Pieces, slices
from haptera.selectors.nodeset import NameFolder

_NODE = node.kind.name
_ORDER = {one: rank for rank, one in enumerate(Condition)}

_Key = tuple[str, str | None, Condition, str, str]


@dataclass(slots=True)
class _Group:
    """Entities that stand alike: how many, on which nodes, and the reason of the first."""

    why: str | None
    count: int = 0
    on: NameFolder = field(default_factory=NameFolder)


def alike(standing: Iterable[tuple[EntityId, Stance]]) -> Pieces[list[AlikeView]]:
    """Groups by kind and name, by condition, what asks for attention last, by reason, by freeze."""
    groups: dict[_Key, _Group] = {}
    for some in slices(standing, READ_AT_ONCE):
        for entity, stance in some:
            name = None if entity.kind == _NODE else entity.name
            why = cause(stance.why, entity.node)
            key = (entity.kind, name, stance.condition, why, stance.frozen or "")
            group = groups.setdefault(key, _Group(stance.why))
            group.count += 1
            group.on.add(entity.node or entity.name)
        yield READING_EACH * len(some)
    told = list[AlikeView]()
    for key in sorted(groups, key=_rank):
        told.append(_told(key, groups[key]))
        yield READING_EACH * groups[key].count
    return told


def _rank(key: _Key) -> tuple[str, str, int, str, str]:
    kind, name, condition, why, frozen = key
    return kind, name or "", _ORDER[condition], why, frozen


def _told(key: _Key, group: _Group) -> AlikeView:
    kind, name, condition, why, frozen = key
    told = group.why if group.count == 1 else why
    return AlikeView(
        kind, name, condition, group.count, group.on.text(), told or None, frozen or None
    )
