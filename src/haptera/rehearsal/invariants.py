"""Conditions that should hold throughout: `always: count(power=off) <= 10%`."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.core.state.row import EntityState
from haptera.core.state.selecting import (
    SeenEntity,
    attributes_of,
    candidates,
    groups_of,
    names_of,
)
from haptera.kinds import node
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import ParseError
from haptera.selectors.names import Groups
from haptera.selectors.selector import Selector, parse_selector
from haptera.selectors.selector_ast import Datum, StateLayer
from haptera.testing.folded import FoldedWorld

_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "below": operator.lt,
    "above": operator.gt,
}
_INVARIANT: Final = re.compile(
    r"(?P<word>always|never):\s*(?:count\((?P<of>.+)\)|(?P<bare>.+?))"
    r"\s*(?P<how><=|>=|=|<|>|\bbelow\b|\babove\b)\s*(?P<number>\d{1,7})\s*(?P<share>%?)"
)


class BrokenInvariant(msgspec.Struct, frozen=True):
    """An invariant that did not hold, when first, in seconds since the change, and how."""

    invariant: str
    at_s: float
    how: str


@dataclass(frozen=True)
class Invariant:
    """A number of entities that a selector means, compared with a limit, always or never so.

    With `serving`, services and replicas count while they run, undisturbed. What really is so
    counts, and not what the parent knows of it.
    """

    text: str
    selector: Selector
    how: str
    limit: int
    is_share: bool
    always: bool
    serving: bool

    def __str__(self) -> str:
        return self.text

    def broken(self, world: FoldedWorld) -> str | None:
        """The way in which it does not hold now, in words; None where it does."""
        table = world.engine.table
        groups = groups_of(table, names_of(attributes_of(table)))
        count = sum(
            self.selector.means(_There(SeenEntity(row, table, groups, world.clock.now), world))
            and not (self.serving and _serves_nobody(row, world))
            for row in candidates(table, [self.selector])
        )
        limit = float(self.limit)
        if self.is_share:
            nodes = sum(1 for one in table if one.kind.name == node.kind.name)
            limit = nodes * self.limit / 100
        if _COMPARE[self.how](count, limit) is self.always:
            return None
        return f"{count} where {self.text.partition(':')[0]} {self.how} {limit:g} was meant"


@dataclass(frozen=True, slots=True)
class _There:
    """An entity as it really is: a parent that was just started knows nothing."""

    seen: SeenEntity
    world: FoldedWorld

    @property
    def id(self) -> EntityId:
        return self.seen.id

    @property
    def groups(self) -> Groups:
        return self.seen.groups

    def value(self, datum: Datum) -> str | None:
        found = datum.resolved(self.world.catalog.kinds)
        there = self.seen.row if found.kind in (None, self.id.kind) else None
        if found.kind == node.kind.name and self.id.node is not None:
            there = self.seen.table.get(node_id(self.id.node))
        variable = None if there is None else there.kind.variable(found.name)
        if there is None or variable is None or found.layer is StateLayer.DESIRED:
            return self.seen.value(datum)
        return self.world.actual.value(there.id, variable)

    def age_ms(self, datum: Datum) -> int | None:
        return self.seen.age_ms(datum)

    def measured(self, series: str) -> float | None:
        return self.seen.measured(series)


def _serves_nobody(row: EntityState, world: FoldedWorld) -> bool:
    """True if it is to serve, and does not: it does not run, or is being disturbed."""
    serves, actual = row.kind.serves, world.actual
    return serves is not None and (
        actual.disrupted[row.id] > 0 or actual.value(row.id, serves.variable) != serves.value
    )


def parse_invariant(text: str) -> Invariant:
    """Read an invariant; a share is of all nodes.

    Without `count`, services and replicas count while they run.

    >>> one = parse_invariant("never: count(service:web and run=running) below 3")
    >>> one.always, one.how, one.limit, str(one.selector)
    (False, 'below', 3, 'service:web and run=running')
    >>> parse_invariant("never: service:web below 3").serving
    True

    Raises:
        HapteraError: it is none, or its selector cannot be read.
    """
    found = _INVARIANT.fullmatch(text.strip())
    if found is None:
        raise ParseError(
            f"{text!r} is no invariant",
            do="write 'always: count(SELECTOR) <= N%' or 'never: SELECTOR below N'",
        )
    return Invariant(
        text.strip(),
        parse_selector(found["of"] or found["bare"]),
        found["how"],
        int(found["number"]),
        bool(found["share"]),
        found["word"] == "always",
        found["of"] is None,
    )
