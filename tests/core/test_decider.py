"""A decision is a value: printed, compared, made again; and what it claims is what is held."""

from haptera.core.decide.decider import Planned
from haptera.core.safety.budgets import ROOM
from haptera.core.safety.pace import BOOTS_A_SECOND_MAX, Pace
from haptera.core.state.allowance import TurnAllowance
from haptera.core.state.entity.decision import (
    ASSENT,
    Assent,
    Awaited,
    ClaimKind,
    Decision,
    Delay,
    Denial,
    EntityClaim,
    Wait,
)
from haptera.core.state.entity.verdict import Verdict
from haptera.core.state.limits import S
from haptera.core.state.turn import Turn
from haptera.model.answers.views import Condition
from haptera.model.entity import node_id
from haptera.model.events import Exited
from tests.core.scenario import row_of
from tests.core.test_safety import OFF, H, Rig

NODES = tuple(f"n{number:02}" for number in range(30))
MODULE = EntityClaim(ClaimKind.MODULE, "bmc")
IN_QUEUE = EntityClaim(ClaimKind.QUEUE, OFF.path)


def decision(rig: Rig, name: str) -> Decision:
    row = row_of(rig.engine, node_id(name))
    assert row.stance.decision is not None
    return row.stance.decision


def again(rig: Rig, name: str) -> Decision:
    """The decision that would be made now, which is not carried out."""
    row = row_of(rig.engine, node_id(name))
    decisions = rig.engine.rounds.decisions
    situation = decisions.assess(Turn(rig.now), row)
    planned = Planned(TurnAllowance(), row.bars(rig.now), row.stance.plan)
    return decisions.decider.decide(situation, planned, rig.now)


def test_a_decision_names_what_comes_next_what_it_claims_and_when_it_is_made_again() -> None:
    rig = Rig(("n01",), answers=False)
    asked = Delay("n01 is asked for its permit", "the permit of n01", on=Awaited.PERMIT)
    assert decision(rig, "n01") == Decision(
        Verdict(Condition.WAITING, f"bmc.switch_off waits: {asked.why}", "the permit of n01"),
        Wait(Awaited.PERMIT),
        (
            MODULE,
            IN_QUEUE,
            EntityClaim(ClaimKind.BUDGET, "node:n01"),
            EntityClaim(ClaimKind.PERMIT, "n01", asked),
        ),
        wake_at=decision(rig, "n01").wake_at,
    )


def test_who_refuses_its_permit_leaves_its_place_to_others_until_it_is_asked_again() -> None:
    rig = Rig(("n01",), refusal="job 7 runs")
    why = "n01 does not permit it: job 7 runs"
    made = decision(rig, "n01")
    match made.next:
        case Wait(Denial(text, again_at)):
            assert (text, again_at) == (why, made.wake_at)
        case _:
            # Decided on again since: it is left alone.
            assert made.status.why == f"bmc.switch_off waits: {why}"
    assert made.claims == (MODULE, IN_QUEUE)
    assert rig.engine.safety.permits.asks("n01") == ()


def test_to_decide_again_changes_nothing_and_comes_to_the_same() -> None:
    rig = Rig(NODES, answers=False)
    for _ in range(3):
        for name in NODES:
            row = rig.engine.table.get(node_id(name))
            before = repr(row), rig.engine.deadline(), rig.engine.safety.permits.asks(name)
            first = again(rig, name)
            assert first == again(rig, name)
            assert (
                repr(row),
                rig.engine.deadline(),
                rig.engine.safety.permits.asks(name),
            ) == before
            if first.wake_at is None:
                assert first == decision(rig, name)
        rig.run(H / S / 2)


def test_only_who_claims_a_place_and_was_granted_it_is_disturbed() -> None:
    rig = Rig(NODES, answers=False)
    places = [decision(rig, name).claim(ClaimKind.BUDGET) for name in NODES]
    granted = [one for one in places if one is not None and isinstance(one.answer, Assent)]
    waiting = [one.answer for one in places if one is not None and isinstance(one.answer, Delay)]
    assert len(granted) == 1
    assert len(waiting) == len(NODES) - 1
    full = "the budget of this parent allows 1 at once"
    assert all(one.why.startswith(full) and one.needs == ROOM for one in waiting)
    asked = [name for name in NODES if rig.engine.safety.permits.asks(name)]
    assert [one.id for one in granted] == [f"node:{name}" for name in asked]


def test_who_boots_later_is_given_the_time_of_its_turn_and_keeps_it() -> None:
    pace, last = Pace(), node_id("n01")
    for number in range(BOOTS_A_SECOND_MAX):
        pace.claim(S, node_id(f"other{number}"), None)
    assert pace.answer(S, last, None) == Delay("others boot first", "its turn to boot", 2 * S)
    pace.claim(S, last, None)
    assert pace.answer(2 * S, last, None) == ASSENT


def test_a_module_that_does_not_serve_is_what_an_entity_waits_for() -> None:
    rig = Rig(("n01",), refusal="job 7 runs")
    rig.engine.handle([Exited("bmc", "was killed")], rig.now)
    made = again(rig, "n01")
    claimed = made.claim(ClaimKind.MODULE)
    assert claimed is not None
    assert isinstance(claimed.answer, Delay)
    assert (claimed.answer.why, claimed.answer.needs) == (made.status.why, made.status.needs)
