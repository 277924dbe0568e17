"""Whom a change of a node concerns: what borrows what changed, and who is about to disturb it."""

from haptera.core.decide.lending import touch_borrowers
from haptera.core.modules.catalog import Catalog
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.kinds import KINDS
from haptera.model.chain import Chain, Do
from haptera.model.changes import StoredEntity
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Fact, Method
from haptera.model.parts import Change, Step

CATALOG = Catalog(KINDS, [])


class OnANode:
    """A node, a service that rests on it, and a system whose flip comes next."""

    def __init__(self) -> None:
        self.table = EntityTable(KINDS)
        self.node = self._row(node_id("n1"))
        self.rests = self._row(EntityId("service", "web", "n1"))
        self.flips = self._row(EntityId("system", "compute", "n1"))
        flip = Step(
            "system", "flip", "system", (Change("run", ("running",), "running"),), disruptive=True
        )
        self.flips.stance.plan = Chain((Do(flip),), (), 1, True, False, 1)

    def _row(self, entity: EntityId) -> EntityState:
        return self.table.load(StoredEntity(entity, {}, "site", {}, 1))

    def learns(self, name: str, value: str) -> set[EntityId]:
        """The node is known to be so: who is decided on?"""
        self.node.belief.learn(name, Fact(value, "look", Method.READ, 0, 0))
        return self.decided_on()

    def decided_on(self) -> set[EntityId]:
        turn = Turn(0)
        touch_borrowers(turn, self.table, self.node, CATALOG)
        return turn.dirty


def test_what_is_borrowed_concerns_all_on_a_node_once() -> None:
    one = OnANode()
    assert one.learns("agent", "up") == {one.rests.id, one.flips.id}
    assert one.decided_on() == set()


def test_what_nobody_borrows_concerns_who_is_about_to_disturb_alone() -> None:
    one = OnANode()
    one.decided_on()
    assert one.learns("busy", "busy") == {one.flips.id}
    assert one.learns("busy", "free") == {one.flips.id}
    one.flips.stance.plan = None
    assert one.learns("busy", "busy") == set()


def test_attributes_concern_all_on_a_node() -> None:
    one = OnANode()
    one.decided_on()
    one.node.desired.attributes["rack"] = "r2"
    assert one.decided_on() == {one.rests.id, one.flips.id}
