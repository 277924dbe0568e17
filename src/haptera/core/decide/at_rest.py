"""The status of an entity without a goal."""

from haptera.core.state.entity.verdict import Verdict
from haptera.core.state.row import EntityState
from haptera.model.answers.views import Condition


def at_rest(row: EntityState) -> Verdict:
    """Idle; or stuck, where its controller has halted over it and says why."""
    halts = row.kind.halts
    said = None if halts is None else row.desired.values.get(halts.said.name)
    if halts is None or said is None:
        return Verdict(Condition.IDLE)
    return Verdict(Condition.STUCK, f"halted: {said.value}", halts.needs)
