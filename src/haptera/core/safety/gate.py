"""The gate of a node: closed to new work while the node may be disturbed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from haptera.core.modules.calls import Calls, Pending
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.gates import gates_at_parent, is_jobless
from haptera.core.modules.supervise import Supervisor
from haptera.core.state.limits import MS, S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.timers import Key, Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.peers import Peer
from haptera.model.effects import Work
from haptera.model.events import Answered, Ended, Failed
from haptera.model.messages import Ask, Permit
from haptera.model.parts import GATE_WITHIN_MS, Step

# How soon a gate that refused, or a module that did not answer for it, is asked again.
GATE_AGAIN_NS: Final = 2 * S
# How soon a gate that drains its node is asked again whether all has ended.
DRAIN_AGAIN_NS: Final = 5 * S

# For so long, in H, a lost parent may still act on what it last heard of us.
HEEDS_H: Final = 2
KEY: Final[Key] = ("gate",)


@dataclass(slots=True)
class ModuleGate:
    """One module's gate: whether it is closed (None: it may be either, as far as is known here).

    `refusal` is why it could not be closed when this was last asked; `draining` what it still waits
    for, letting nothing new begin, `draining_since` then; `call` is under way.
    """

    closed: bool | None = None
    call: int | None = None
    refusal: str | None = None
    draining: str | None = None
    draining_since: int | None = None
    again_at: int = 0


class Gate:
    """Closes the gates of all modules while anybody asks for it, and says when all are closed.

    How a gate stands is its module's business, and outlives both processes. A gate is opened
    only where the parent is heard and asks for nothing: a node boots closed. One at the parent
    is opened where this side asks for nothing. `unguarded` tells what a node without any gate
    says to who would disturb it.
    """

    def __init__(
        self,
        side: Side,
        modules: Iterable[str],
        timers: Timers,
        calls: Calls,
        supervisor: Supervisor,
        row: Callable[[], EntityState | None],
        unguarded: Callable[[EntityState | None], str | None],
    ) -> None:
        self._side = side
        self._leaves = {name: ModuleGate() for name in modules}
        self._timers = timers
        self._calls = calls
        self._supervisor = supervisor
        self._row = row
        self._unguarded = unguarded
        self._told: tuple[Ask, ...] = ()
        self._own: tuple[Ask, ...] = ()
        self._heard = False
        self._over_at: int | None = None

    def receive(self, turn: Turn, parent: Peer) -> None:
        """The parent is there: what it asks now is all that it asks."""
        self._heard, self._over_at = True, None
        if parent.asks != self._told:
            self._told = parent.asks
            self._forgive()
        self.reconcile(turn)

    def own(self, turn: Turn, asks: tuple[Ask, ...]) -> None:
        """What this side itself asks now."""
        self._own = asks
        self._forgive()
        self.reconcile(turn)

    def lose(self, turn: Turn) -> None:
        """The parent is lost: what it was permitted is withdrawn at once, and ended later.

        For it may act for a while on what it last heard, and what it did may take effect later.
        """
        if self._told and self._over_at is None:
            late_ns = max(one.late_ms for one in self._told) * MS
            self._over_at = turn.now + HEEDS_H * self._side.hello_ns + late_ns
            self._timers.soonest(KEY, self._over_at)

    def reconcile(self, turn: Turn) -> None:
        """Have closed what should be closed, and opened what should be open."""
        if self._over_at is not None and self._over_at <= turn.now:
            self._told, self._over_at = (), None
        row = self._row()
        settled = self._told or self._own or self._heard or self._side.node is None
        if row is None or not settled:
            return
        close = bool(self._told or self._own)
        for name, leaf in self._leaves.items():
            if leaf.call is None and leaf.closed is not close:
                if leaf.again_at > turn.now:
                    self._timers.soonest(KEY, leaf.again_at)
                elif not self._supervisor.ready(name):
                    self._supervisor.need(turn, name)
                else:
                    leaf.closed = None  # from here on it may be either
                    leaf.call = self._ask(turn, row, name, Work.HOLD if close else Work.RELEASE)
        if self._over_at is not None:
            self._timers.soonest(KEY, self._over_at)

    def answered(self, turn: Turn, pending: Pending, event: Answered | Ended | Failed) -> None:
        """A module has closed or opened its gate, or says why not."""
        leaf = self._leaves[pending.part.module]
        leaf.call = leaf.refusal = leaf.draining = None
        match event:
            case Failed(_, text):
                # Even where it refused: it may not have begun, so that it stands as it stood.
                leaf.closed = None
                drained_ms = None if self._side.node is not None else event.drained_ms
                said = f"{pending.part.module}: {text}" if pending.work is Work.HOLD else None
                if drained_ms is None:
                    leaf.again_at, leaf.refusal = turn.now + GATE_AGAIN_NS, said
                else:
                    leaf.again_at, leaf.draining = turn.now + DRAIN_AGAIN_NS, said
                    since = turn.now - drained_ms * MS
                    leaf.draining_since = min(since, leaf.draining_since or since)
            case _:
                leaf.closed = pending.work is Work.HOLD
        if leaf.draining is None:
            leaf.draining_since = None
        self.reconcile(turn)

    def lost(self, module: str) -> None:
        """A module is gone: how its gate stands will have to be asked."""
        leaf = self._leaves.get(module)
        if leaf is not None:
            if leaf.call is not None:
                self._calls.give_up(leaf.call)
            self._leaves[module] = ModuleGate()

    def permits(self) -> tuple[Permit, ...]:
        """What is said to the parent's asks; nothing yet where that is not settled."""
        return () if self._over_at is not None else self._said(self._told)

    def permits_own(self) -> tuple[Permit, ...]:
        return self._said(self._own)

    def draining(self) -> str | None:
        """What is waited for, letting nothing new begin, until the last one is closed."""
        return next((leaf.draining for leaf in self._leaves.values() if leaf.draining), None)

    def drained_ns(self, now: int) -> int:
        """For how long it has been waited for."""
        begun = [one.draining_since for one in self._leaves.values()]
        return max((now - since for since in begun if since is not None), default=0)

    @property
    def is_over(self) -> bool:
        """At a parent, whether nobody asks for it and all are known to be open."""
        all_open = all(leaf.closed is False for leaf in self._leaves.values())
        return self._side.node is None and not self._own and all_open

    def _said(self, asks: tuple[Ask, ...]) -> tuple[Permit, ...]:
        if not asks:
            return ()
        refusal = self._refusal()
        if refusal is None and not all(leaf.closed for leaf in self._leaves.values()):
            return ()
        return tuple(Permit(one.id, refusal is None, refusal or "") for one in asks)

    def _refusal(self) -> str | None:
        if not self._leaves:
            return self._unguarded(self._row())
        refused = [leaf.refusal for leaf in self._leaves.values()]
        # Who closed its gate, and then was disabled, opens it to nobody.
        rest = [self._supervisor.at_rest(n) for n, leaf in self._leaves.items() if not leaf.closed]
        return next((text for text in (*refused, *rest) if text is not None), None)

    def _forgive(self) -> None:
        """Something else is asked: what refused before is asked again."""
        for leaf in self._leaves.values():
            leaf.refusal, leaf.draining, leaf.again_at = None, None, 0
            leaf.draining_since = None

    def _ask(self, turn: Turn, row: EntityState, module: str, work: Work) -> int:
        part = Step(module, work.value, row.kind.name, (), within_ms=GATE_WITHIN_MS)
        deadline_at = turn.now + GATE_WITHIN_MS * MS
        return self._calls.ask(turn, row, row, part, work, deadline_at=deadline_at)


def unguarded(catalog: Catalog, node: EntityState | None) -> str | None:
    """What an agent without a gate says: nothing where none is needed, or the parent has one."""
    if node is not None and (is_jobless(node) or gates_at_parent(catalog, node)):
        return None
    return (
        "no module here reads whether the node is busy: run module jobs,"
        " or give the node `jobs: none`"
    )
