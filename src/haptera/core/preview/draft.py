"""The state of entities after changes that nobody has written.

Only what the changes reach is drafted: they themselves, and what is on a node whose attributes
change.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from haptera.core.modules.catalog import Catalog
from haptera.core.state.diff import goal as goal_of
from haptera.core.state.related import known_of_related
from haptera.core.state.row import EntityState
from haptera.core.state.selecting import Attributes
from haptera.core.state.start import start
from haptera.core.state.table import EntityTable
from haptera.kinds import node
from haptera.model.answers.plan import Rewrite
from haptera.model.changes import Change, CloseIntent, OpenIntent, Undeclare
from haptera.model.entity import EntityId, node_id
from haptera.planner.domain.domain import Domain
from haptera.selectors.names import split
from haptera.selectors.nodeset import fold

NODE: Final = node.kind.name
# Entities drafted in a turn: some 6 ms.
DRAFTED_A_TURN_MAX: Final = 150
# Changes sorted in a turn: some 2 ms.
SORTED_A_TURN_MAX: Final = 2_000
# Rows let go of in the time that drafting one takes.
LET_GO_AT_ONCE: Final = 10
# Sets of nodes kept folded.
FOLDS_CACHED_MAX: Final = 16
_NOTHING: Final = (None, None)


@dataclass(frozen=True, slots=True)
class Case:
    """Entities of one class and title that would stand alike and should be alike.

    `row` and `node` are those of one of them. The rows of the others are not kept.
    """

    row: EntityState
    node: EntityState | None
    domain: Domain
    state: int
    goal: Mapping[str, str]
    entities: list[EntityId]


@dataclass(frozen=True, slots=True)
class Draft:
    """What changes rewrite, the cases that they make, and whom they would have stay as they are.

    `attributes` are those that the nodes would have. Those that `leave` are declared no more;
    `new_nodes` nobody knew of before.
    """

    rewrites: Mapping[Rewrite, Collection[EntityId]]
    cases: list[Case]
    stays: Collection[EntityId]
    attributes: Attributes
    leave: Collection[EntityId]
    new_nodes: int


class Drafting:
    """A draft in the making, some entities at a time: a large cluster takes many turns."""

    def __init__(self, table: EntityTable, catalog: Catalog, changes: Collection[Change]) -> None:
        self._table = table
        self._catalog = catalog
        self._made_for = table.revision, catalog.sums
        self._unsorted = deque(changes)
        self._changes: dict[EntityId, list[Change]] = {}
        # What is on a node is drafted after it, for it borrows of it.
        self._nodes, self._others = deque[EntityId](), deque[EntityId]()
        self._drafted = table.draft()
        self._drafted_nodes: list[EntityId] = []
        self._attributes_of: dict[str, Mapping[str, str]] = {}
        self._cases: dict[tuple[object, ...], Case] = {}
        self._stays: dict[EntityId, None] = {}
        self._leave: list[EntityId] = []
        self._new_nodes = 0
        self._rewritten: dict[Rewrite, list[EntityId]] = {}

    @property
    def stale(self) -> bool:
        """Whether something else is desired since, or the classes are not those of before."""
        return self._made_for != (self._table.revision, self._catalog.sums)

    def go_on(self, count_max: int = DRAFTED_A_TURN_MAX) -> Draft | None:
        """Draft so many more; the draft, once it has all.

        Then the rows of nodes are let go of, some at a time too: all at once take 20 ms.
        """
        if not self._sort():
            return None
        for _ in range(count_max):
            if left := self._nodes or self._others:
                self._take(left.popleft())
            else:
                self._let_go(self._drafted_nodes[-LET_GO_AT_ONCE:])
                del self._drafted_nodes[-LET_GO_AT_ONCE:]
        if self._nodes or self._others or self._drafted_nodes:
            return None
        cases, stays = [*self._cases.values()], self._stays
        attributes, leave = self._attributes, self._leave
        return Draft(self._rewritten, cases, stays, attributes, leave, self._new_nodes)

    def _sort(self) -> bool:
        """Sort some more of the changes by what they are of; tells whether that were all."""
        for _ in range(min(SORTED_A_TURN_MAX, len(self._unsorted))):
            change = self._unsorted.popleft()
            assert not isinstance(change, OpenIntent | CloseIntent), "these are not for people"
            if change.entity not in self._changes:
                self._changes[change.entity] = []
                (self._nodes if change.entity.kind == NODE else self._others).append(change.entity)
            self._changes[change.entity].append(change)
        return not self._unsorted

    def _take(self, entity: EntityId) -> None:
        if entity.node is not None:
            split(entity.node)  # This is kept: to fold all names at once takes a third then.
        before = self._table.get(entity)
        if before is not None:
            self._drafted.adopt(before)
        for change in self._changes.get(entity, ()):
            if isinstance(change, Undeclare):
                self._drafted.dismiss(entity, "")
            else:
                self._drafted.apply(change, 0)
        row = self._row_of(entity)
        self._others += self._borrowing(before, row)
        for told in _rewrites(entity, before, row):
            self._rewritten.setdefault(told, []).append(entity)
            if told.undeclares:
                self._leave.append(entity)
        case = None if row is None else _way(row, self._node_of(row), self._catalog)
        if row is None or case is None:
            self._stays[entity] = None
        elif not _goes_anyway(case, self._table, self._catalog):
            key = entity.title, case.domain, case.state, tuple(sorted(case.goal.items()))
            self._cases.setdefault(key, case).entities.append(entity)
        if entity.kind == NODE:
            self._new_nodes += before is None and row is not None
            self._drafted_nodes.append(entity)  # Not yet: what is on it borrows of it.
        else:
            self._let_go([entity])

    def _row_of(self, entity: EntityId) -> EntityState | None:
        """The drafted row, related as it will be."""
        row = self._drafted.get(entity)
        if row is not None:
            row.stance.relate(known_of_related(self._table, row, self._node_of(row)))
        return row

    def _let_go(self, entities: Iterable[EntityId]) -> None:
        """Forget the drafted rows, of nodes all but their attributes."""
        for entity in entities:
            row = self._drafted.get(entity)
            if row is not None and entity.kind == NODE:
                self._attributes_of[entity.name] = row.desired.attributes
            self._drafted.remove(entity)
        self._drafted.take_removed()

    def _borrowing(self, before: EntityState | None, after: EntityState | None) -> list[EntityId]:
        """What is on a node whose attributes change, and is not drafted anyway."""
        if before is None or after is None or before.kind.name != NODE:
            return []
        if before.desired.attributes == after.desired.attributes:
            return []
        return [one.id for one in self._table.on(before.id.name) if one.id not in self._changes]

    def _node_of(self, row: EntityState) -> EntityState | None:
        """The row of its node, as drafted, or as it is where the changes do not reach it."""
        return None if row.id.node is None else self._node(row.id.node)

    def _node(self, name: str) -> EntityState | None:
        drafted = self._drafted.get(node_id(name))
        return self._table.get(node_id(name)) if drafted is None else drafted

    def _attributes(self, name: str) -> Mapping[str, str] | None:
        node = self._table.get(node_id(name))
        return self._attributes_of.get(name, None if node is None else node.desired.attributes)


def on_nodes(entities: Iterable[EntityId]) -> str | None:
    """On which nodes they are; None where they are the whole cluster's."""
    return folded(one.node for one in entities if one.node is not None)


def folded(nodes: Iterable[str]) -> str | None:
    """The nodes as one node-set; None where there are none."""
    names = frozenset(nodes)
    return _folded(names) if names else None


@lru_cache(FOLDS_CACHED_MAX)
def _folded(nodes: frozenset[str]) -> str:
    """Folded once: a plan names the same nodes again and again."""
    return fold(nodes)


def _way(row: EntityState, on: EntityState | None, catalog: Catalog) -> Case | None:
    """The row's way to its goal, as it stands; None where there is none to go."""
    if row.desired.resident and row.id.node is None:
        return None
    domain = catalog.domain(row, on)
    goal = goal_of(row, domain)
    if not goal:
        return None
    state = start(row, on, domain, goal)
    return None if domain.meets(state, goal) else Case(row, on, domain, state, goal, [])


def _goes_anyway(case: Case, table: EntityTable, catalog: Catalog) -> bool:
    """Whether it goes that way as things are, without any change."""
    there = table.get(case.row.id)
    now = None if there is None else _way(there, table.node_of(there), catalog)
    return now is not None and (now.domain, now.state, now.goal) == (
        case.domain, case.state, case.goal,
    )  # fmt: skip


def _rewrites(
    entity: EntityId, before: EntityState | None, after: EntityState | None
) -> Iterator[Rewrite]:
    """The fate of each value, without its place."""
    was, becomes = _values(before), _values(after)
    for name in sorted(was.keys() | becomes.keys(), key=lambda name: name or ""):
        pair = was.get(name, _NOTHING), becomes.get(name, _NOTHING)
        if pair[0] != pair[1]:
            yield Rewrite(entity.title, None, 0, name, *pair[0], *pair[1])


def _values(row: EntityState | None) -> dict[str | None, tuple[str | int, str]]:
    """All that is desired of it, by name, each with its owner; under None its attributes."""
    if row is None or not row.desired.declared or row.desired.leaving:
        return {}
    attributes = msgspec.json.encode(row.desired.attributes, order="sorted").decode()
    values: dict[str | None, tuple[str | int, str]] = {None: (attributes, row.desired.owner)}
    for name, one in row.desired.values.items():
        values[name] = one.value, one.owner
    return values
