"""Permits that this side requests from nodes before it disturbs them, and the answers."""

from collections.abc import Callable
from typing import Final

from haptera.core.desired.policies import Policies
from haptera.core.safety.node_gates import NodeGates
from haptera.core.state.entity.decision import Lacking
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.core.state.turn import Turn
from haptera.core.sync.peers import Peer
from haptera.model.entity import EntityId
from haptera.model.messages import Ask, Permit
from haptera.model.parts import Step

# What may yet come of a gate that has not said no.
DRAINS: Final = "the gates at the parent"
# A node that is there and does not say within so long whether it permits a step is as good as no.
ANSWER_WITHIN_NS: Final = 10 * S
# How long a parent leaves a node alone that refused a permit, so that others have their turn.
PERMIT_AGAIN_NS: Final = 5 * S


class Permits:
    """The asks that stand, by node and entity: from before a step until its outcome is known.

    A parent's asks travel in its messages for as long as they stand; all go straight to the gates
    of this side, too: an agent's own, or those at the parent.
    """

    def __init__(
        self,
        side: Side,
        peer: Callable[[str], Peer | None],
        gates: NodeGates,
        policies: Policies,
    ) -> None:
        self._side = side
        self._peer = peer
        self._gates = gates
        self._policies = policies
        self._asks: dict[str, dict[EntityId, Ask]] = {}
        # What agents themselves do, for which only the gates of this side are asked.
        self._theirs: dict[str, dict[EntityId, Ask]] = {}
        self._changed: dict[str, None] = {}

    def asks(self, node: str) -> tuple[Ask, ...]:
        """All that stand for a node, oldest first."""
        return tuple(self._asks.get(node, {}).values())

    def ask_of(self, entity: EntityId) -> Ask | None:
        return self._asks.get(_node(entity), {}).get(entity)

    def entities(self, node: str) -> tuple[EntityId, ...]:
        """On whose behalf this node is asked."""
        return tuple(self._asks.get(node, ()))

    def asking(self) -> list[EntityId]:
        """All on whose behalf a node is asked."""
        return [entity for asks in self._asks.values() for entity in asks]

    def ask_for(self, entity: EntityId, intent: str, step: Step) -> Ask:
        """What is asked for a step under the id that its intent has, or will have."""
        within_ms = self._policies.terms(entity, step).within_ms
        return Ask(intent, step.path, within_ms + step.late_ms)

    def put(self, turn: Turn, entity: EntityId, ask: Ask | None) -> None:
        """Ask this on the entity's behalf, and nothing else; None: nothing."""
        node = _node(entity)
        asks = self._asks.setdefault(node, {})
        if asks.get(entity) != ask:
            asks.pop(entity, None)
            if ask is not None:
                asks[entity] = ask
            self._changed[node] = None
            self._ask_gates(turn, node)
        if not asks:
            del self._asks[node]

    def put_theirs(self, turn: Turn, entity: EntityId, ask: Ask | None) -> None:
        """Ask the gates of this side for what the entity's agent means to do; None: nothing."""
        node = _node(entity)
        asks = self._theirs.setdefault(node, {})
        if asks.get(entity) != ask:
            asks.pop(entity, None)
            if ask is not None:
                asks[entity] = ask
            self._ask_gates(turn, node)
        if not asks:
            del self._theirs[node]

    def refuses(self, entity: EntityId) -> Lacking | None:
        """What the gates of this side have against what the entity's agent means to do."""
        ask = self._theirs.get(_node(entity), {}).get(entity)
        assert ask is not None
        said = self._gates.said(_node(entity), ask)
        if said is not None:
            return None if said.granted else Lacking(f"it is not permitted: {said.text}")
        draining = self._gates.draining(_node(entity))
        doing = "is being drained" if draining else "is asked for its permit at the parent"
        return Lacking(f"{_node(entity)} {doing}{f': {draining}' if draining else ''}", DRAINS)

    def _ask_gates(self, turn: Turn, node: str) -> None:
        asks = (*self._asks.get(node, {}).values(), *self._theirs.get(node, {}).values())
        self._gates.own(turn, node, asks)

    def said(self, entity: EntityId, now: int) -> Permit | None:
        """What the node's agent says now to what a parent asks on the entity's behalf."""
        peer = self._peer(_node(entity))
        fresh = peer is not None and peer.fresh(now, self._side.hello_ns)
        permits = peer.permits if peer is not None and fresh else ()
        ask = self.ask_of(entity)
        return next((one for one in permits if ask is not None and one.id == ask.id), None)

    def said_here(self, entity: EntityId) -> Permit | None:
        """What the gates of this side say now to that; None: nothing yet."""
        ask = self.ask_of(entity)
        return None if ask is None else self._gates.said(_node(entity), ask)

    def draining(self, entity: EntityId) -> str | None:
        """What a gate at the parent waits for, letting nothing begin on the entity's node."""
        return self._gates.draining(_node(entity))

    def take_changed(self) -> tuple[str, ...]:
        """The nodes of which something else is asked than when this was last asked."""
        nodes, self._changed = tuple(self._changed), {}
        return nodes


def _node(entity: EntityId) -> str:
    assert entity.node is not None, entity
    return entity.node
