"""What a former parent may have begun that the store of its successor does not know."""

from collections.abc import Iterable

from haptera.core.act.outcome import results
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.model.parts import Context, Step


class Predecessor:
    """Holds a promoted parent's steps on a node until its predecessor's are over, and were read.

    A standby that lagged does not have the last intents. What is on no node, as images are, was the
    former parent's own. Nothing disruptive begins before `held_until`.
    """

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._over_at: dict[str, int] = {}
        self.held_until = 0

    def begin(self, steps: Iterable[Step], now: int) -> int:
        """The former parent may have begun any of these until now; returns `held_until`."""
        self.held_until = now
        for one in steps:
            if one.disruptive:
                over_at = now + (one.within_ms + one.late_ms) * MS
                self.held_until = max(self.held_until, over_at)
            if one.context is Context.PARENT:
                late_ms = one.late_ms + (0 if one.ends_with_call else one.within_ms)
                over_at = self._over_at.get(one.kind, now)
                self._over_at[one.kind] = max(now + late_ms * MS, over_at)
        return self.held_until

    def waits(self, turn: Turn, row: EntityState, step: Step) -> str | None:
        """Why this step may not begin yet, if so; what was read too early is not known any more."""
        over_at = self._over_at.get(step.kind)
        if over_at is None or row.id.node is None or step.context is not Context.PARENT:
            return None
        if turn.now < over_at:
            self._timers.soonest(("decide", row.id), over_at)
            return "this parent was promoted: steps of the former parent may still take effect"
        known = [row.belief.known.get(change.variable) for change in results(step)]
        if all(fact is None or fact.at >= over_at for fact in known):
            return None
        for change in results(step):
            row.belief.forget(change.variable, turn.now)
        turn.touch(row.id)
        return "this parent was promoted: what its predecessor's steps have come to is read first"
