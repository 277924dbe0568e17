"""Reports of parents below, on the nodes that they keep."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from haptera.core.state.entity.verdict import Stands, Verdict
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.charge import Charge
from haptera.model.answers.views import Condition
from haptera.model.entity import EntityId
from haptera.model.events import Reported, Silenced
from haptera.model.facts import Fact
from haptera.model.messages import ObservedUpdate

# Of entities that are not declared here, or not yet, so many are noted in the words of one parent.
UNDECLARED_MAX: Final = 1_000


class Reports:
    """What parents below report of the nodes below them, each node by the word of one.

    That one is the first that hears the node's agent, itself or by a parent below it, until another
    begins to. `refused` counts what a parent reported of nodes that it is not above, and of
    entities beyond the bound that are not declared here.
    """

    def __init__(self, table: EntityTable, charge: Charge) -> None:
        self._table = table
        self._charge = charge
        self._passive: set[str] = set()
        self._last: dict[str, dict[EntityId, tuple[ObservedUpdate, int]]] = {}
        # By parent: the nodes that it has a word on, and whether their agents are heard there.
        self._nodes: dict[str, Mapping[str, bool]] = {}
        self._keeper: dict[str, str] = {}
        # By parent: the entities that it reported when they were not declared here.
        self._undeclared: dict[str, set[EntityId]] = {}
        self.refused: Counter[str] = Counter()

    def hears(self, node: str) -> bool | None:
        """Whether a node's agent is heard below; None: nobody below has a word on it."""
        keeper = self._keeper.get(node)
        return None if keeper is None else self._nodes[keeper].get(node)

    def subtree(self, node: str) -> str | None:
        """The parent directly below whose word on this node counts, or would; None: it is ours."""
        if self._charge.keeps(node):
            return None
        return self._keeper.get(node) or self._charge.first_below(node)

    def receive(self, turn: Turn, event: Reported | Silenced) -> None:
        """A parent below reports, or has not for too long."""
        if isinstance(event, Silenced):
            self._last.pop(event.parent, None)
            self._undeclared.pop(event.parent, None)
            self._leave(turn, event.parent, self._nodes.pop(event.parent, {}))
        else:
            self._take(turn, event)

    def _take(self, turn: Turn, event: Reported) -> None:
        parent, before = event.parent, self._nodes.get(event.parent, {})
        nodes = before
        if event.nodes is not None:
            nodes = {
                one: heard for one, heard in event.nodes.items() if self._charge.leads(parent, one)
            }
            self._nodes[parent] = nodes
        told = self._last.setdefault(parent, {})
        news: dict[str, set[EntityId]] = {}
        for update in event.updates:
            node = update.entity.node
            if node not in nodes or node is None or not self._charge.leads(parent, node):
                self.refused[parent] += 1
            elif not update.values and self._table.get(update.entity) is None:
                # It is declared neither there nor here.
                told.pop(update.entity, None)
                self._undeclared.get(parent, set()).discard(update.entity)
            elif self._has_room(parent, update.entity):
                told[update.entity] = update, event.arrived_at
                news.setdefault(node, set()).add(update.entity)
            else:
                self.refused[parent] += 1
        begins = {one for one, heard in nodes.items() if heard and not before.get(one)}
        for node in sorted(news.keys() | begins):
            self._take_node(turn, parent, node, news.get(node, set()), new=node in begins)
        self._leave(turn, parent, [one for one in before if one not in nodes])

    def _has_room(self, parent: str, entity: EntityId) -> bool:
        """Whether this may be noted: it is declared, or is one of few that are not."""
        if self._table.get(entity) is not None:
            return True
        noted = self._undeclared.setdefault(parent, set())
        if len(noted) >= UNDECLARED_MAX and entity not in noted:
            noted -= {one for one in noted if self._table.get(one) is not None}
        if len(noted) < UNDECLARED_MAX:
            noted.add(entity)
        return entity in noted

    def _take_node(
        self, turn: Turn, parent: str, node: str, news: set[EntityId], *, new: bool
    ) -> None:
        """Go by what this parent says of the node, if its word counts, or does from now on."""
        if self._charge.keeps(node):
            return
        keeper = self._keeper.get(node)
        if keeper is None or (keeper != parent and new):
            self._keep(turn, node, parent)
        elif keeper == parent:
            self._show(turn, node, news)

    def _leave(self, turn: Turn, parent: str, nodes: Iterable[str]) -> None:
        """This parent has no word on these any more: another's counts, or what is remembered."""
        told, noted = self._last.get(parent, {}), self._undeclared.get(parent, set())
        for node in sorted(nodes):
            of_it = {one for one in noted if one.node == node}
            noted -= of_it
            for entity in {row.id for row in self._table.on(node)} | of_it:
                told.pop(entity, None)
            if self._keeper.get(node) != parent:
                continue
            others = [one for one, words in self._nodes.items() if node in words]
            if others:
                self._keep(turn, node, max(others, key=lambda one: self._nodes[one][node]))
                continue
            del self._keeper[node]
            for row in self._table.on(node):
                _forget(turn, row)
                turn.touch(row.id)

    def forget(self, turn: Turn, row: EntityState) -> None:
        """What was read here until now is remembered; a step may have read on for a while."""
        _forget(turn, row)

    def adopt_status(self, turn: Turn, row: EntityState) -> None:
        """Where an entity of a node that another keeps stands, in that one's words."""
        assert row.id.node is not None
        self._begin(turn, row.id.node)
        if row.report.stands is None:
            self._recall(turn, row, row.id.node)
        stands = row.report.stands
        if stands is not None and stands.wanted not in (None, row.desired.digest()):
            verdict = Verdict(Condition.WAITING, f"{self._keeper_of(row.id.node)} is to hear of it")
        elif stands is not None:
            verdict = Verdict(stands.condition, stands.why, quotes=stands)
            row.attempts.quote(stands.error)
        elif row.desired.values:
            verdict = Verdict(Condition.WAITING, f"is kept by {self._keeper_of(row.id.node)}")
        else:
            verdict = Verdict(Condition.IDLE)
        if row.stance.quote(verdict, turn.now):
            turn.changed.add(row.id)

    def _recall(self, turn: Turn, row: EntityState, node: str) -> None:
        """Show what was reported of an entity, which may have been declared anew since.

        Its parent has nothing new to tell, if it did not hear that it was not declared meanwhile.
        """
        told = self._last.get(self._keeper.get(node, ""), {}).get(row.id)
        if told is not None:
            _show(row, *told)
            turn.changed.add(row.id)
        if row.kind.name == "node":
            for one in self._table.on(node):
                if one.desired.resident:
                    turn.touch(one.id)

    def _keeper_of(self, node: str) -> str:
        """In words: who keeps it, if all are there."""
        listed = self._charge.listed(node)
        return listed[0] if listed else "the parent above"

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

    def _keep(self, turn: Turn, node: str, parent: str) -> None:
        """The reports of this parent count from now on, all of them."""
        self._keeper[node] = parent
        self._show(turn, node, {one.id for one in self._table.on(node)})

    def _show(self, turn: Turn, node: str, entities: set[EntityId]) -> None:
        self._begin(turn, node)
        told = self._last[self._keeper[node]]
        for entity in sorted(entities & told.keys()):
            row = self._table.get(entity)
            if row is not None:
                _show(row, *told[entity])
                turn.touch(entity)


def _show(row: EntityState, update: ObservedUpdate, arrived_at: int) -> None:
    known, remembered = dict[str, Fact](), dict[str, Fact]()
    for name, seen in update.values.items():
        if row.kind.has(name, seen.value):
            at = arrived_at - seen.age_ms * MS
            fact = Fact(seen.value, seen.by, seen.method, at, 0, seen.note)
            (known if seen.known else remembered)[name] = fact
    row.belief.show(known, remembered)
    told = update.standing
    row.report.stands = None
    if told is not None:
        since = arrived_at - told.since_ms * MS
        row.report.stands = Stands(told.condition, since, told.why, told.error, told.wanted)


def _forget(turn: Turn, row: EntityState) -> None:
    row.report.clear()
    row.attempts.absolve()
    for name in [*row.belief.known]:
        row.belief.forget(name, turn.now)
