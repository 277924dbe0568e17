"""Steps of a former parent that are unknown to the store of its successor."""

from collections.abc import Iterable

from haptera.core.act.outcome import results
from haptera.core.state.entity.decision import Lacking, Stale
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.model.parts import Context, Step


class Predecessor:
    """Holds a promoted parent's steps on a node until its predecessor's are over, and were read.

    A standby that lagged does not have the last intents. What is on no node, as images are, was the
    former parent's own. Nothing disruptive begins before `held_until`.
    """

    def __init__(self) -> None:
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

    def holds(self, row: EntityState, step: Step, now: int) -> Lacking | None:
        """Why this step may not begin yet, if so; what was read too early does not count."""
        over_at = self._over_at.get(step.kind)
        if over_at is None or row.id.node is None or step.context is not Context.PARENT:
            return None
        needs = "the end of the time in which the former parent's steps may take effect"
        if now < over_at:
            text = "this parent was promoted: steps of the former parent may still take effect"
            return Lacking(text, needs, over_at, over_at)
        variables = tuple(change.variable for change in results(step))
        known = [row.belief.known.get(name) for name in variables]
        if all(fact is None or fact.at >= over_at for fact in known):
            return None
        text = "this parent was promoted: what its predecessor's steps have come to is read first"
        return Lacking(text, needs, on=Stale(variables))
