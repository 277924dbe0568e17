"""Permits that this side requests from nodes before it disturbs them, and the answers."""

from collections.abc import Callable, Collection
from typing import Final

from haptera.core.desired.policies import Policies
from haptera.core.safety.node_gates import NodeGates
from haptera.core.state.entity.decision import ASSENT, Awaited, ClaimAnswer, Delay, Denial
from haptera.core.state.limits import OVERRIDE_NS, S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.turn import Turn
from haptera.core.sync.peers import Peer
from haptera.model.entity import EntityId
from haptera.model.messages import Ask, Permit
from haptera.model.parts import Context, Step

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
        self.gates = gates
        self._policies = policies
        self._asks: dict[str, dict[EntityId, Ask]] = {}
        # What agents themselves do, for which only the gates of this side are asked.
        self._theirs: dict[str, dict[EntityId, Ask]] = {}
        self._changed: dict[str, None] = {}
        # The request of each entity that is unanswered, and since when.
        self._asked: dict[EntityId, tuple[str, int]] = {}
        self._refused: dict[EntityId, Denial] = {}
        # Until when a node need not permit anything, because an admin said so.
        self._overridden: dict[str, int] = {}

    def answer(
        self, row: EntityState, step: Step, asked: Collection[Context], now: int
    ) -> ClaimAnswer:
        """The one answer of all gates that are `asked` for a step."""
        said = list[Permit | None]()
        standing, ask = self.standing(row, step), self.ask_of(row.id)
        if standing is None or ask is None or ask.id != standing.id:
            standing = None
        if self._side.context in asked:
            said.append(None if standing is None else self.said_here(row.id))
        if self._side.context is Context.PARENT and Context.SELF in asked:
            said.append(None if standing is None else self.said(row.id, now))
        refused = next((one for one in said if one is not None and not one.granted), None)
        if all(said) and refused is None:
            return ASSENT
        return self._unsaid(row.id, refused, standing, now)

    def standing(self, row: EntityState, step: Step) -> Ask | None:
        """The request for this step that is made already."""
        if row.work.stepping is not None:
            return self.ask_for(row.id, row.work.stepping.intent.id, step)
        asked = self.ask_of(row.id)
        return asked if asked is not None and asked.step == step.path else None

    def refusal(self, entity: EntityId, now: int) -> Denial | None:
        """The answer because of which its node is left alone now."""
        refused = self._refused.get(entity)
        return None if refused is None or refused.again_at <= now else refused

    def is_overridden(self, node: str, now: int) -> bool:
        """Whether an admin said that this node need not permit anything."""
        return now < self._overridden.get(node, 0)

    def override(self, node: str, entities: Collection[EntityId], now: int) -> None:
        """An admin says so, for a while; `entities` are on the node."""
        self._overridden[node] = now + OVERRIDE_NS
        for one in entities:
            self._refused.pop(one, None)

    def claim(self, turn: Turn, row: EntityState, step: Step, next_id: Callable[[], str]) -> Ask:
        """Have the node be asked for this step, and for no other on its entity."""
        ask = self.standing(row, step) or self.ask_for(row.id, next_id(), step)
        said = self.said_here(row.id)
        self.put(turn, row.id, ask)
        self._refused.pop(row.id, None)
        if self.said_here(row.id) != said:
            turn.dirty.add(row.id)  # gates that are closed already have answered at once
        return ask

    def note(self, row: EntityState, on: Denial | Awaited, now: int) -> None:
        """Note what the answer to its request was, or since when there is none."""
        if isinstance(on, Denial):
            self._refused[row.id] = on
        elif row.asking is not None and self._asked.get(row.id, ("", 0))[0] != row.asking.id:
            self._asked[row.id] = row.asking.id, now

    def leave(self, turn: Turn, entity: EntityId) -> None:
        """Nothing disruptive is under way on this entity, or meant."""
        self._asked.pop(entity, None)
        if entity.node is not None:
            self.put(turn, entity, None)

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

    def answer_theirs(self, entity: EntityId, now: int) -> ClaimAnswer:
        """The answer of this side's gates to what the entity's agent means to do."""
        ask = self._theirs.get(_node(entity), {}).get(entity)
        assert ask is not None
        said = self.gates.said(_node(entity), ask)
        if said is not None and not said.granted:
            again_at = now + self._side.hello_ns
            return Denial(f"it is not permitted: {said.text}", again_at)
        if said is not None:
            return ASSENT
        draining = self.gates.draining(_node(entity))
        doing = "is being drained" if draining else "is asked for its permit at the parent"
        return Delay(f"{_node(entity)} {doing}{f': {draining}' if draining else ''}", DRAINS)

    def _unsaid(
        self, entity: EntityId, refused: Permit | None, ask: Ask | None, now: int
    ) -> Delay | Denial:
        """The progress of a request, in words."""
        name, needs = entity.node, permit_of(entity)
        if refused is not None:
            text = f"{name} does not permit it: {refused.text}"
        elif (draining := self.draining(entity)) is not None:
            return Delay(f"{name} is being drained: {draining}", needs)
        elif ask is not None and self._unanswered_ns(entity, ask, now) >= ANSWER_WITHIN_NS:
            text = f"{name} has not answered the request for its permit"
        else:
            return Delay(f"{name} is asked for its permit", needs, on=Awaited.PERMIT)
        # Leave this node its peace for a while, and its place to others.
        return Denial(text, now + PERMIT_AGAIN_NS)

    def _unanswered_ns(self, entity: EntityId, ask: Ask, now: int) -> int:
        asked, at = self._asked.get(entity, ("", now))
        return now - at if asked == ask.id else 0

    def _ask_gates(self, turn: Turn, node: str) -> None:
        asks = (*self._asks.get(node, {}).values(), *self._theirs.get(node, {}).values())
        self.gates.own(turn, node, asks)

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
        return None if ask is None else self.gates.said(_node(entity), ask)

    def draining(self, entity: EntityId) -> str | None:
        """What a gate at the parent waits for, letting nothing begin on the entity's node."""
        return self.gates.draining(_node(entity))

    def take_changed(self) -> tuple[str, ...]:
        """The nodes with other demands than at the last question."""
        nodes, self._changed = tuple(self._changed), {}
        return nodes


def permit_of(entity: EntityId) -> str:
    """The permit that a step on this entity needs, in words."""
    return f"the permit of {entity.node}"


def _node(entity: EntityId) -> str:
    assert entity.node is not None, entity
    return entity.node
