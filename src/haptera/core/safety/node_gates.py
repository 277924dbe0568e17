"""The gates of all nodes that are answered for on this side."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from haptera.core.modules.calls import Calls, Pending
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.gates import gates_at_parent
from haptera.core.modules.supervise import Supervisor
from haptera.core.safety.gate import KEY, Gate, unguarded
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.peers import Peer, Tier
from haptera.model.entity import node_id
from haptera.model.events import Answered, Ended, Failed
from haptera.model.messages import Ask, Permit
from haptera.model.parts import DRAIN_REST_S, DRAIN_S_MAX

DRAIN_NS_MAX: Final = DRAIN_S_MAX * S
# A minute more than the gate itself counts, from when it has let go of the node.
DRAIN_REST_NS: Final = (DRAIN_REST_S + 60) * S
# How long a parent that starts waits until what it held before is asked for again, and held on.
UNASKED_NS: Final = 60 * S

# Nodes that an earlier process may have held are released so many at a time.
RELEASING_MAX: Final = 16


class NodeGates:
    """An agent's own gate; at a parent, those of each node that is asked for, until they are open.

    At a parent they answer from outside, as a batch system drains nodes. How they stand outlives
    this process: what an earlier one held, and nobody has asked for again by `UNASKED_NS` after the
    start, is released then.
    """

    def __init__(
        self,
        side: Side,
        catalog: Catalog,
        timers: Timers,
        calls: Calls,
        supervisor: Supervisor,
        table: EntityTable,
    ) -> None:
        self._side = side
        self._catalog = catalog
        self._timers = timers
        self._calls = calls
        self._supervisor = supervisor
        self._table = table
        self._gates: dict[str, Gate] = {}
        # Until when nodes are left alone that were drained for too long.
        self._in_vain: dict[str, int] = {}
        self._unsure: deque[str] | None = None
        self._release_at: int | None = None
        if (own := side.node) is not None:
            modules = catalog.gates(side.context)
            self._gates[own] = self._made(modules, lambda: table.get(node_id(own)))

    def heed(self, turn: Turn, parent: Peer) -> None:
        """On an agent: do what the parent asks, or what its silence demands."""
        if (gate := self._gates.get(self._side.node or "")) is None or parent.heard_at is None:
            return
        if parent.tier is Tier.LOST:
            gate.lose(turn)
        else:
            gate.receive(turn, parent)

    def permits(self) -> tuple[Permit, ...]:
        """On an agent: what is said to what the parent asks."""
        gate = self._gates.get(self._side.node or "")
        return () if gate is None else gate.permits()

    def own(self, turn: Turn, node: str, asks: tuple[Ask, ...]) -> None:
        """This is all that is asked for a node now."""
        if node in self._in_vain:
            return  # it is let go of, whatever is asked
        gate = self._gate(node)
        if gate is not None:
            gate.own(turn, asks)
            if self._side.node is None and self._table.get(node_id(node)) is None:
                del self._gates[node]  # nobody declares it any more: it was let go of

    def said(self, node: str, ask: Ask) -> Permit | None:
        """What its gates say to an ask; None: nothing yet. Who has none has nothing against it."""
        if node in self._in_vain:
            days = DRAIN_NS_MAX // S // 86_400
            return Permit(
                ask.id, granted=False, text=f"it was drained for {days} d without success"
            )
        gate = self._gate(node)
        if gate is None:
            return Permit(ask.id, granted=True)
        return next((one for one in gate.permits_own() if one.id == ask.id), None)

    def draining(self, node: str) -> str | None:
        """What is waited for until the last gate is closed."""
        gate = self._gates.get(node)
        return None if gate is None else gate.draining()

    def reconcile(self, turn: Turn) -> None:
        """Close and open what is due; let go of what an earlier process may have held."""
        self._in_vain = {name: at for name, at in self._in_vain.items() if at > turn.now}
        for name, gate in list(self._gates.items()):
            if gate.drained_ns(turn.now) >= DRAIN_NS_MAX:
                self._in_vain[name] = turn.now + DRAIN_REST_NS
                self._timers.soonest(KEY, self._in_vain[name])
                gate.own(turn, ())
            gate.reconcile(turn)
            if gate.is_over:
                del self._gates[name]
        if self._side.node is None:
            self._release_unasked(turn)

    def _release_unasked(self, turn: Turn) -> None:
        if self._release_at is None:
            self._release_at = turn.now + UNASKED_NS
        if turn.now < self._release_at:
            self._timers.soonest(KEY, self._release_at)
            return
        if self._unsure is None:
            self._unsure = deque(self._table.nodes())
        while self._unsure and len(self._gates) < RELEASING_MAX:
            released = self._gate(self._unsure.popleft())
            if released is not None:
                released.reconcile(turn)

    def answered(self, turn: Turn, pending: Pending, event: Answered | Ended | Failed) -> None:
        """A module has closed or opened its gate for a node, or says why not."""
        gate = self._gates.get(pending.entity.name)
        if gate is not None:
            gate.answered(turn, pending, event)
            self.reconcile(turn)

    def lost(self, module: str) -> None:
        """A module is gone: how its gates stand will have to be asked."""
        for gate in self._gates.values():
            gate.lost(module)

    def _gate(self, name: str) -> Gate | None:
        """The node's gates here; None where none answers for it."""
        row = self._table.get(node_id(name))
        if name not in self._gates and row is not None:
            modules = gates_at_parent(self._catalog, row)
            # Where there are no agents, one that has no gate is answered for here, too.
            if modules or self._side.folded:
                self._gates[name] = self._made(modules, lambda: self._table.get(row.id) or row)
        return self._gates.get(name)

    def _made(self, modules: Iterable[str], row: Callable[[], EntityState | None]) -> Gate:
        return Gate(
            self._side,
            modules,
            self._timers,
            self._calls,
            self._supervisor,
            row,
            lambda node: unguarded(self._catalog, node),
        )
