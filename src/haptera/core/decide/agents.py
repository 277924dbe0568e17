"""Facts of a node that no module reads: of its agent, by its hellos, or by being it."""

from collections.abc import Iterable

from haptera.core.act.contradiction import ReadingConflicts
from haptera.core.decide.decide import Decisions
from haptera.core.decide.decider import Situation
from haptera.core.modules.catalog import Catalog
from haptera.core.safety.safety import Safety
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.core.sync.peers import Tier
from haptera.core.sync.presence import (
    know_jobs,
    know_work,
    learn_hello,
    learn_self,
    lose,
    own_values,
    stop_waiting,
    vouch,
)
from haptera.kinds.node import Agent, agent, work
from haptera.model.messages import Measure


class Agents:
    """Keeps what is believed of agents in step with what their nodes are known to be."""

    def __init__(
        self,
        side: Side,
        neighbours: Neighbours,
        decisions: Decisions,
        contests: ReadingConflicts,
        safety: Safety,
        catalog: Catalog,
    ) -> None:
        self._side = side
        self._neighbours = neighbours
        self._decisions = decisions
        self._contests = contests
        self._safety = safety
        self._catalog = catalog

    def measured(self, node: str, measures: Iterable[Measure]) -> None:
        """How long parts usually take on a node, by its word; of others than ours it is nothing."""
        for one in measures:
            if one.part in self._catalog.on_nodes:
                self._neighbours.usual.reported(one.part, node, one.usual_ms * MS)

    def noticed(self, turn: Turn, node: EntityState, value: str | None) -> None:
        """The queue says where a node stands; a module that serves this knows better."""
        looks = self._catalog.domain(node, node).looks
        if self._neighbours.keeps(node.id.name) and all(one.at != work.name for one in looks):
            know_work(turn, node, value, self._neighbours.incarnation(node.id))

    def settle(self, turn: Turn, node: EntityState) -> Situation | None:
        """Before a node is decided on: whether its agent can be there, and was heard.

        Returns how the node was assessed, where nothing has changed since.
        """
        know_jobs(turn, node, self._neighbours.incarnation(node.id))
        if self._side.node is not None:
            self._know_self(turn, node)
            return None
        peer = self._neighbours.peer(node.id.name)
        if peer is not None:
            vouch(turn, node, peer)
        situation = self._decisions.assess(turn, node)
        knowable = situation.domain.knowable(situation.state, agent.name, Agent.UP)
        if not knowable:
            stop_waiting(node)
        if peer is None:
            return situation
        peer.disbelieved = not knowable
        if not knowable:
            self._contests.heard(turn, node, situation.domain, peer)
            return None
        if peer.tier is not Tier.LOST:
            return None if learn_hello(turn, node, peer, self._neighbours.usual) else situation
        if lose(turn, node):
            self._safety.unrest.lost(turn.now, node)
            return None
        return situation

    def _know_self(self, turn: Turn, node: EntityState) -> None:
        for name, value in own_values():
            situation = self._decisions.assess(turn, node)
            if situation.domain.knowable(situation.state, name, value):
                learn_self(turn, node, name, value, self._neighbours.incarnation(node.id))
