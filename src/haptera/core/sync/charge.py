"""Which nodes a parent of a tree keeps itself, and what it knows of those that others keep."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from haptera.core.state.entity.verdict import Stands, Verdict
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.peers import Peer, Tier
from haptera.kinds.node import parents
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Reported, Silenced
from haptera.model.facts import Fact
from haptera.model.messages import ObservedUpdate, SeenValue, Standing
from haptera.model.views import Condition


def parents_of(attributes: Mapping[str, str]) -> tuple[str, ...]:
    """The parents that a node may have, the first one first; none where the root keeps it.

    >>> parents_of({"parents": "m1, m2"})
    ('m1', 'm2')
    """
    return tuple(attributes.get(parents.name, "").replace(",", " ").split())


class Charge:
    """Whose a node is: the first parent's on its list, or another's while that one hears it.

    The root keeps nodes without a list. A parent acts on what it keeps, and on nothing else.
    """

    def __init__(self, side: Side, table: EntityTable, peer: Callable[[str], Peer | None]) -> None:
        self._side = side
        self._table = table
        self._peer = peer

    def keeps(self, node: str | None) -> bool:
        """Whether what is on this node is decided on here."""
        if node is None:
            return True
        listed = self.listed(node)
        if not listed:
            return self._side.name is None
        return listed[0] == self._side.name or self.hears(node)

    def may_keep(self, node: str) -> bool:
        """Whether the node may move here."""
        listed = self.listed(node)
        return self._side.name in listed if listed else self._side.name is None

    def hears(self, node: str) -> bool:
        """Whether the node's agent speaks with this parent now."""
        peer = self._peer(node)
        heard = peer is not None and peer.heard_at is not None and peer.tier is not Tier.LOST
        return heard and self.may_keep(node)

    def listed(self, node: str) -> tuple[str, ...]:
        row = self._table.get(node_id(node))
        return () if row is None else parents_of(row.desired.attributes)


class Reports:
    """What parents below report of the nodes that they keep, each node by the word of one.

    `refused` counts what a parent reported of nodes that are not its own.
    """

    def __init__(self, table: EntityTable, charge: Charge) -> None:
        self._table = table
        self._charge = charge
        self._passive: set[str] = set()
        self._last: dict[str, dict[EntityId, tuple[ObservedUpdate, int]]] = {}
        self._heard: dict[str, frozenset[str]] = {}
        self._keeper: dict[str, str] = {}
        self.refused: Counter[str] = Counter()

    def take(self, turn: Turn, event: Reported | Silenced) -> None:
        """A parent below reports, or has not for too long."""
        if isinstance(event, Silenced):
            self._silence(turn, event.parent)
        else:
            self._take(turn, event)

    def _take(self, turn: Turn, event: Reported) -> None:
        """Take over what a parent reports of nodes whose list has it."""
        told = self._last.setdefault(event.parent, {})
        before = self._heard.get(event.parent, frozenset())
        nodes: dict[str, None] = {}
        for update in event.updates:
            node = update.entity.node
            if node is None or event.parent not in self._charge.listed(node):
                self.refused[event.parent] += 1
                continue
            told[update.entity] = update, event.arrived_at
            nodes[node] = None
        heard = frozenset(one for one in event.heard if event.parent in self._charge.listed(one))
        self._heard[event.parent] = heard
        for node in sorted(nodes.keys() | heard):
            if self._charge.keeps(node):
                continue
            if self._moves(node, event.parent, new=node in heard - before):
                self._keeper[node] = event.parent
                self._show_all(turn, node)
            elif self._keeper.get(node) == event.parent:
                self._show_some(turn, node, {one.entity for one in event.updates})

    def _silence(self, turn: Turn, parent: str) -> None:
        """A parent has not reported for too long: what it told is remembered."""
        self._heard.pop(parent, None)
        self._last.pop(parent, None)
        for node in [one for one, keeper in self._keeper.items() if keeper == parent]:
            other = next((one for one, heard in self._heard.items() if node in heard), None)
            if other is not None:
                self._keeper[node] = other
                self._show_all(turn, node)
                continue
            del self._keeper[node]
            for row in self._table.on(node):
                _forget(turn, row)
                turn.touch(row.id)

    def stand(self, turn: Turn, row: EntityState) -> None:
        """Where an entity of a node that another keeps stands, in that one's words."""
        assert row.id.node is not None
        self._begin(turn, row.id.node)
        stands = row.report.stands
        if stands is not None:
            verdict = Verdict(stands.condition, stands.why, quotes=stands)
            row.attempts.quote(stands.error)
        elif row.desired.values:
            listed = self._charge.listed(row.id.node)
            keeper = listed[0] if listed else "the parent above"
            verdict = Verdict(Condition.WAITING, f"is kept by {keeper}")
        else:
            verdict = Verdict(Condition.IDLE)
        if row.stance.quote(verdict, turn.now):
            turn.changed.add(row.id)

    def resume(self, turn: Turn, node: str) -> None:
        """The node is kept here from now on."""
        self._passive.discard(node)
        for row in self._table.on(node):
            row.report.stands = None
            turn.touch(row.id)

    def _begin(self, turn: Turn, node: str) -> None:
        """Once the node is not kept here any more: what was known is remembered."""
        if node not in self._passive:
            self._passive.add(node)
            for row in self._table.on(node):
                _forget(turn, row)
                turn.touch(row.id)

    def _moves(self, node: str, parent: str, *, new: bool) -> bool:
        """Whether a node's keeper is another one than before, by what this parent reports."""
        keeper = self._keeper.get(node)
        return keeper is None or (keeper != parent and new)

    def _show_all(self, turn: Turn, node: str) -> None:
        told = self._last.get(self._keeper[node], {})
        self._show_some(turn, node, {one.id for one in self._table.on(node)} & told.keys())

    def _show_some(self, turn: Turn, node: str, entities: set[EntityId]) -> None:
        self._begin(turn, node)
        told = self._last[self._keeper[node]]
        for entity in sorted(entities):
            row = self._table.get(entity)
            if row is not None and entity.node == node and entity in told:
                _show(row, *told[entity])
                turn.touch(entity)


def report(rows: Iterable[EntityState], now: int) -> tuple[ObservedUpdate, ...]:
    """What a parent reports of these, whole."""
    return tuple(
        ObservedUpdate(
            row.id,
            row.link.heard,
            {name: _seen(fact, now, known=True) for name, fact in row.belief.known.items()}
            | {name: _seen(fact, now, known=False) for name, fact in row.belief.remembered.items()},
            standing=Standing(
                row.stance.condition,
                row.stance.lasted(now) // MS,
                row.stance.why,
                row.attempts.error,
            ),
        )
        for row in rows
    )


def _seen(fact: Fact, now: int, *, known: bool) -> SeenValue:
    return SeenValue(fact.value, known, fact.method, max(0, now - fact.at) // MS, fact.by)


def _show(row: EntityState, update: ObservedUpdate, arrived_at: int) -> None:
    known, remembered = dict[str, Fact](), dict[str, Fact]()
    for name, seen in update.values.items():
        if row.kind.has(name, seen.value):
            fact = Fact(seen.value, seen.by, seen.method, arrived_at - seen.age_ms * MS, 0)
            (known if seen.known else remembered)[name] = fact
    row.belief.show(known, remembered)
    told = update.standing
    row.report.stands = None
    if told is not None:
        since = arrived_at - told.since_ms * MS
        row.report.stands = Stands(told.condition, since, told.why, told.error)


def _forget(turn: Turn, row: EntityState) -> None:
    row.report.clear()
    row.attempts.absolve()
    for name in [*row.belief.known]:
        row.belief.forget(name, turn.now)
