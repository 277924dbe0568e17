"""How a whole cluster stands in a few lines: entities that stand alike are told together."""

from collections.abc import Iterable
from typing import Protocol

from haptera.kinds import node
from haptera.model.entity import EntityId
from haptera.model.reason_text import cause
from haptera.model.views import AlikeView, Condition
from haptera.selectors.nodeset import fold

_NODE = node.kind.name
_ORDER = {one: rank for rank, one in enumerate(Condition)}

_Key = tuple[str, str | None, Condition, str, str]


class Stood(Protocol):
    """What stands somewhere: a row."""

    id: EntityId
    frozen: str | None

    @property
    def condition(self) -> Condition: ...

    @property
    def why(self) -> str | None: ...


def alike(rows: Iterable[Stood]) -> list[AlikeView]:
    """Groups by kind and name, by condition, what asks for attention last, by reason, by freeze."""
    groups: dict[_Key, list[Stood]] = {}
    for row in rows:
        name = None if row.id.kind == _NODE else row.id.name
        key = (row.id.kind, name, row.condition, cause(row.why, row.id.node), row.frozen or "")
        groups.setdefault(key, []).append(row)
    return [_told(key, groups[key]) for key in sorted(groups, key=_rank)]


def _rank(key: _Key) -> tuple[str, str, int, str, str]:
    kind, name, condition, why, frozen = key
    return kind, name or "", _ORDER[condition], why, frozen


def _told(key: _Key, rows: list[Stood]) -> AlikeView:
    kind, name, condition, why, frozen = key
    on = fold(row.id.node or row.id.name for row in rows)
    told = rows[0].why if len(rows) == 1 else why
    return AlikeView(kind, name, condition, len(rows), on, told or None, frozen or None)
