"""The ways on for an entity that waits or is stuck, in words for people."""

from typing import Final

from haptera.core.state.entity.work import Phase
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.model.answers.views import Condition
from haptera.model.chain import Chain, NoChain, Reason, ReasonKind
from haptera.model.entity import node_id
from haptera.model.parts import Context
from haptera.model.walltime import span
from haptera.planner.reasons.achievers import listed

NO_WAY: Final = {
    ReasonKind.UNKNOWABLE_GOAL: "another desired value, or a look that can find this one",
    ReasonKind.NO_STEP: "another desired value, or a module that leads there",
    ReasonKind.NO_PROGRESS: "another reading, or the end of the back-off",
    ReasonKind.BUDGET: "fewer values desired at once",
}


def awaited(row: EntityState, now: int) -> str | None:
    """Until when the outcome of a step is read, what waits for it, and how to wait for less."""
    stepping = row.work.stepping
    if stepping is None or stepping.phase is not Phase.READING or now >= stepping.settled_at:
        return None
    if row.stance.verdict.needs is not None:
        return None
    changed = {change.variable for change in stepping.step.changes}
    waits = [
        (name, str(one.value))
        for name, one in row.desired.values.items()
        if row.kind.variable(name) is not None and name not in changed
    ]
    others = f" ({listed(waits)})" if waits else ""
    within = span(_rounded_up_ms(stepping.settled_at - now))
    text = f"the outcome of {stepping.step.path}, which may come within {within}"
    text = f"{text}; until then no other step of {row.id} begins{others}"
    if stepping.error is not None and not stepping.step.ends_with_call:
        text = f"{text}; if its work ends with its process, declare it `ends_with_call`"
    return text


def _rounded_up_ms(left: int) -> int:
    """To whole seconds, or whole minutes where it is many."""
    unit_s = 1 if left <= 120 * S else 60
    return -(-left // (unit_s * S)) * unit_s * 1_000


def unblock(row: EntityState) -> str | None:
    """None where nothing is in the way."""
    if row.stance.condition not in (Condition.WAITING, Condition.STUCK):
        return None
    if row.stance.verdict.needs is not None:
        return row.stance.verdict.needs
    if isinstance(row.stance.plan, NoChain):
        return _reason(row, row.stance.plan.reason)
    if isinstance(row.stance.plan, Chain) and row.stance.plan.links:
        part = row.stance.plan.links[0].part
        who = "the parent" if part.context is Context.PARENT else f"the agent of {row.id.node}"
        return f"{who}, by {part.path}"
    return None


def again_at(row: EntityState, now: int) -> int | None:
    """When what failed is tried again, or what is waited for comes; None where nobody knows."""
    at = row.stance.verdict.again_at
    if row.stance.condition is Condition.WAITING and at is not None and at > now:
        return at
    if row.stance.condition is not Condition.STUCK:
        return None
    times = (row.try_again_at(now), row.stance.verdict.again_at)
    return min((at for at in times if at is not None), default=None)


def _reason(row: EntityState, reason: Reason) -> str:
    match reason.kind:
        case ReasonKind.WAITS:
            node = "" if row.id.node is None else f" of {node_id(row.id.node)}"
            return f"{listed(reason.waits_for)}{node}"
        case ReasonKind.BLOCKED:
            return listed(reason.wants) or f"another {reason.variable}, or another step"
        case kind:
            return NO_WAY[kind]
