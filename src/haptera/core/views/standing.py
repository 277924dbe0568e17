"""How a whole cluster stands in a few lines: entities that stand alike are told together."""

from collections.abc import Iterable

from haptera.core.state.entity.stance import Stance
from haptera.kinds import node
from haptera.model.answers.reason_text import cause
from haptera.model.answers.views import AlikeView, Condition
from haptera.model.entity import EntityId
from haptera.selectors.nodeset import fold

_NODE = node.kind.name
_ORDER = {one: rank for rank, one in enumerate(Condition)}

_Key = tuple[str, str | None, Condition, str, str]


def alike(standing: Iterable[tuple[EntityId, Stance]]) -> list[AlikeView]:
    """Groups by kind and name, by condition, what asks for attention last, by reason, by freeze."""
    groups: dict[_Key, list[tuple[EntityId, Stance]]] = {}
    for entity, stance in standing:
        name = None if entity.kind == _NODE else entity.name
        why = cause(stance.why, entity.node)
        key = (entity.kind, name, stance.condition, why, stance.frozen or "")
        groups.setdefault(key, []).append((entity, stance))
    return [_told(key, groups[key]) for key in sorted(groups, key=_rank)]


def _rank(key: _Key) -> tuple[str, str, int, str, str]:
    kind, name, condition, why, frozen = key
    return kind, name or "", _ORDER[condition], why, frozen


def _told(key: _Key, standing: list[tuple[EntityId, Stance]]) -> AlikeView:
    kind, name, condition, why, frozen = key
    on = fold(entity.node or entity.name for entity, _ in standing)
    told = standing[0][1].why if len(standing) == 1 else why
    return AlikeView(kind, name, condition, len(standing), on, told or None, frozen or None)
