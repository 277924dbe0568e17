"""Plans that the core cannot afford: asked of a worker once, and waited for."""

from dataclasses import replace
from random import Random

from haptera.core.decide.backlog import PLANNED
from haptera.core.decide.plan_queue import (
    QUESTIONS_MAX,
    SEARCH_AGAIN_NS,
    SEARCH_QUEUE_AGAIN_NS,
    SEARCH_WITHIN_NS,
    PlanQueue,
    Sought,
)
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.allowance import TurnAllowance
from haptera.core.state.limits import ANSWER_GRACE_NS, MS, S
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.presence import HEAR
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.chain import NoChain, Reason, ReasonKind, ToldChain
from haptera.model.changes import (
    CloseIntent,
    Desired,
    OpenIntent,
    SetDesired,
    Stored,
    StoredEntity,
)
from haptera.model.effects import Call, Effect, Reply, SearchPlan, Start, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Answered,
    Asked,
    Ended,
    Event,
    PlanFailed,
    PlanFound,
    Proposed,
    Ready,
    Ticked,
    Written,
)
from haptera.model.intent import Intent
from haptera.model.parts import Step
from haptera.planner.domain.bars import NO_BARS
from haptera.planner.domain.problem import problem_of
from haptera.planner.plan_query import EXPANSIONS_APART_MAX, PlanQuery, query_of
from tests.core.scenario import (
    ATTRIBUTES,
    BMC,
    LOOK,
    NODE,
    ON,
    OTHER,
    SIDE,
    call,
    row_of,
    standing,
    stored,
    told,
)
from tests.planner.shapes import drawn
from tests.planner.tangle import KIND, TANGLE, goals
from tests.planner.tangle import MANIFEST as TANGLE_MANIFEST

PATIENT = EXPANSIONS_APART_MAX
BLOCKED = NoChain(Reason(ReasonKind.BLOCKED, "power", "no way to power=on"), 7)
GAVE_UP = NoChain(Reason(ReasonKind.BUDGET, None, "gave up after looking at 20000 states"), 20_000)
TANGLED = EntityId("k", "tangled", None)
LOOKS_UP = ToldChain((("bmc.look", "on"),), optimal=True, doubts=False, expanded=2)
SWITCHES_ON = ToldChain((("bmc.switch_on", None),), optimal=True, doubts=False, expanded=2)


def poor(*nodes: StoredEntity) -> Engine:
    """A parent that can afford no plan."""
    state = stored(desired={"power": "on"})
    state.entities.extend(nodes)
    return Engine(SIDE, Catalog(KINDS, [BMC], work_max=0), state, 0, S)


def search(
    number: int, at: int, observed: dict[str, str] | None = None, steps: tuple[Step, ...] = (ON,)
) -> SearchPlan:
    """What is asked of how the node's power is to come on."""
    problem = problem_of(KINDS["node"], [HEAR, LOOK, *steps], ATTRIBUTES)
    return SearchPlan(
        number,
        dict(problem.variables),
        dict(problem.attributes),
        problem.looks,
        problem.steps,
        observed or {},
        {},
        {"power": "on"},
        (),
        (),
        PATIENT,
        at + SEARCH_WITHIN_NS,
    )


def read_off(engine: Engine) -> Engine:
    """Looked at once: its power is off, and the worker is asked what to do about that."""
    told(engine, S, Ready("bmc"))
    told(engine, S, PlanFound(1, LOOKS_UP))
    assert told(engine, 2 * S, Answered(1, "off", 2 * S)) == [search(2, 2 * S, {"power": "off"})]
    return engine


def test_what_cannot_be_afforded_is_asked_of_a_worker_and_only_looked_at_meanwhile() -> None:
    engine = poor()
    intent = Intent("a1-1", NODE, "bmc", "switch_on", 5 * S, "boot")

    assert told(engine, S, Ticked()) == [Start("bmc"), search(1, S)]
    assert standing(engine) == (Condition.ACTING, "is being planned")
    assert told(engine, 2 * S, Ready("bmc")) == [call(1, Work.LOOK, "look", 3 * S)]
    assert told(engine, 2 * S, PlanFound(1, LOOKS_UP)) == []
    assert told(engine, 3 * S, Answered(1, "off", 2 * S)) == [search(2, 3 * S, {"power": "off"})]
    assert told(engine, 4 * S, Ticked()) == []
    assert told(engine, 5 * S, PlanFound(2, SWITCHES_ON)) == [Write(1, (OpenIntent(intent),))]


def test_a_question_is_asked_once_however_many_have_it_and_as_often_as_they_like() -> None:
    node = StoredEntity(OTHER, ATTRIBUTES, "site", {"power": Desired("on", "site")}, 3)
    engine = poor(node)

    assert told(engine, S, Ticked()) == [Start("bmc"), search(1, S)]
    assert told(engine, 2 * S, Asked(NODE), Asked(OTHER)) == []
    told(engine, 3 * S, PlanFound(1, BLOCKED))
    assert told(engine, 4 * S, Asked(NODE), Asked(OTHER)) == []
    rows = [engine.table.get(one) for one in (NODE, OTHER)]
    assert [row and row.stance.why for row in rows] == ["no way to power=on"] * 2


def test_an_answer_counts_only_for_the_state_that_it_was_asked_for() -> None:
    engine = poor()
    told(engine, S, Ready("bmc"))

    assert told(engine, 2 * S, Answered(1, "off", 2 * S)) == []  # one at a time
    assert told(engine, 3 * S, PlanFound(1, BLOCKED)) == [search(2, 3 * S, {"power": "off"})]
    assert standing(engine) == (Condition.ACTING, "is being planned")


def test_what_nobody_asks_any_more_when_its_turn_comes_is_not_sought() -> None:
    engine = read_off(poor())
    told(engine, 12 * S, Ticked())  # It is looked at again.
    told(engine, 12 * S, Answered(2, "on", 12 * S))

    assert told(engine, 13 * S, PlanFound(2, SWITCHES_ON)) == []
    assert standing(engine) == (Condition.CONVERGED, None)


def test_an_answer_with_parts_that_were_replaced_meanwhile_is_not_taken() -> None:
    engine = read_off(poor())
    softer = replace(ON, cost=5)
    told(engine, 3 * S, Ready("bmc", 1, "2", replace(BMC, steps=(softer,))))
    told(engine, 3 * S, Asked(NODE))
    assert engine.catalog.step("bmc", "switch_on") == ON  # It serves what was awaited.

    engine.catalog.replace(replace(BMC, steps=(softer,)))
    assert told(engine, 3 * S, Asked(NODE)) == []
    assert asked(engine, 4 * S, PlanFound(2, SWITCHES_ON)) == [
        search(3, 4 * S, {"power": "off"}, (softer,))
    ]


def test_an_intent_whose_plan_is_sought_anew_is_not_acted_on() -> None:
    engine = read_off(poor())
    told(engine, 3 * S, PlanFound(2, SWITCHES_ON))
    told(engine, 3 * S, Proposed(9, (SetDesired(NODE, "agent", "up", "site"),)))

    first, second, third = told(engine, 3 * S + MS, Written(2, 5), Written(1, 6))
    assert (first, second) == (Reply(9, 5), Write(3, (CloseIntent("a1-1", begun=False),)))
    assert isinstance(third, SearchPlan)
    assert third.goal == {"power": "on", "agent": "up"}


def test_nothing_is_asked_while_a_step_runs_for_its_outcome_counts() -> None:
    engine = read_off(poor())
    told(engine, 3 * S, PlanFound(2, SWITCHES_ON))
    assert asked(engine, 3 * S, Written(1, 5)) == []
    assert asked(engine, 4 * S, Ended(2)) == []
    told(engine, 5 * S, Answered(3, "on", 5 * S))
    assert standing(engine) == (Condition.CONVERGED, None)


def test_a_worker_that_died_is_tried_again_after_a_rest_and_then_given_up() -> None:
    engine = poor()
    told(engine, S, Ticked())
    died = "is being planned again: the planner's worker killed by SIGKILL"
    gave_up = "gave up after 2 tries: the planner's worker killed by SIGKILL"

    assert told(engine, 2 * S, PlanFailed(1, "killed by SIGKILL")) == []
    assert standing(engine) == (Condition.ACTING, died)
    assert engine.deadline() == 3 * S
    assert told(engine, 3 * S, Ticked()) == [search(2, 3 * S)]
    assert told(engine, 4 * S, PlanFailed(2, "killed by SIGKILL")) == []
    assert standing(engine) == (Condition.STUCK, gave_up)
    assert view(row_of(engine), 4 * S).again_in_ms == SEARCH_AGAIN_NS // MS


def test_what_was_given_up_is_sought_again_after_its_time_or_when_a_person_asks() -> None:
    engine = poor()
    told(engine, S, Ticked())
    told(engine, 2 * S, PlanFound(1, GAVE_UP))
    assert standing(engine) == (Condition.STUCK, "gave up after looking at 20000 states")

    assert asked(engine, 3 * S, Ticked()) == []
    assert asked(engine, 4 * S, Asked(NODE)) == [search(2, 4 * S)]
    told(engine, 5 * S, PlanFound(2, GAVE_UP))
    again_at = 5 * S + SEARCH_AGAIN_NS
    assert asked(engine, again_at - 1, Ticked()) == []
    assert asked(engine, again_at, Ticked()) == [search(3, again_at)]


def test_a_worker_of_which_nothing_is_heard_counts_as_dead() -> None:
    engine = poor()
    told(engine, S, Ticked())
    late = S + SEARCH_WITHIN_NS + ANSWER_GRACE_NS

    assert asked(engine, late - 1, Ticked()) == []
    assert standing(engine) == (Condition.ACTING, "is being planned")
    told(engine, late, Ticked())
    text = "is being planned again: the planner's worker gave no answer for 300 s"
    assert standing(engine) == (Condition.ACTING, text)
    assert asked(engine, late + S, Ticked()) == [search(2, late + S)]
    assert asked(engine, late + S, PlanFound(1, BLOCKED)) == []  # Too late for its search.
    assert standing(engine) == (Condition.ACTING, text)


def test_an_answer_that_is_no_chain_from_here_is_none() -> None:
    nonsense = (
        replace(SWITCHES_ON, links=(("bmc.switch_on", None),)),  # It starts from off.
        replace(SWITCHES_ON, links=(("bmc.explode", None),)),
        replace(SWITCHES_ON, links=(("bmc.look", "off"),)),
        replace(SWITCHES_ON, links=(("bmc.look", "hung"),)),
        replace(SWITCHES_ON, links=()),
    )
    for chain in nonsense:
        engine = poor()
        told(engine, S, Ticked())
        told(engine, 2 * S, PlanFound(1, chain))
        said = "the planner's worker answered with a plan that does not start from this state"
        text = f"is being planned again: {said}"
        assert standing(engine) == (Condition.ACTING, text)


def test_past_the_longest_queue_a_question_is_put_off() -> None:
    engine = poor()
    (row,) = (one for one in engine.table if one.id == NODE)
    domain = engine.catalog.domain(row, row)
    searches, turn = PlanQueue(SIDE, Timers()), Turn(S)
    for number in range(QUESTIONS_MAX):
        one = PlanQuery(domain, number, (), NO_BARS)
        assert searches.ask(turn, node_id(f"n{number}"), one) is None
    known, new = (
        PlanQuery(domain, 7, (), NO_BARS),
        PlanQuery(domain, QUESTIONS_MAX, (), NO_BARS),
    )

    assert searches.ask(turn, NODE, known) is None
    refused = searches.ask(turn, OTHER, new)
    text = "256 other plans are queued already"
    reason = Reason(ReasonKind.BUDGET, None, text)
    assert refused == Sought(NoChain(reason, 0), S + SEARCH_QUEUE_AGAIN_NS)
    searches.release(node_id("n9"))
    assert searches.ask(turn, OTHER, new) is None


def asked(engine: Engine, now: int, *events: Event) -> list[SearchPlan]:
    return [one for one in told(engine, now, *events) if isinstance(one, SearchPlan)]


def all_told(engine: Engine, now: int, *events: Event) -> list[Effect]:
    """The effects of this turn, and of those that follow at once."""
    effects = told(engine, now, *events)
    while (engine.deadline() or now + 1) <= now:
        effects += told(engine, now, Ticked())
    return effects


def test_a_tangle_is_left_to_a_worker_before_it_holds_up_the_core() -> None:
    (goal,), start = goals(1), drawn(TANGLE, Random(1))
    values = {name: Desired(value, "site") for name, value in goal.items()}
    state = Stored(1, 1, [StoredEntity(TANGLED, {}, "site", values, 1)], [], {})
    catalog = Catalog({**KINDS, "k": KIND}, [TANGLE_MANIFEST])
    engine = Engine(SIDE, catalog, state, 0, S)
    assert Start("m", 1, "") in all_told(engine, S)
    looks = all_told(engine, S, Ready("m"))
    seen = [
        (one.id, start[one.part.removeprefix("look_")]) for one in looks if isinstance(one, Call)
    ]
    answers = (Answered(call, value, S) for call, value in seen)
    (search,) = [one for one in all_told(engine, 2 * S, *answers) if isinstance(one, SearchPlan)]

    row = row_of(engine, TANGLED)
    assert (row.stance.condition, row.stance.why) == (Condition.ACTING, PLANNED)
    assert (search.observed, search.goal) == (start, goal)
    domain = catalog.domain(row, None)
    query = query_of(domain, domain.start(start, {}), goal, NO_BARS)
    tried = catalog.plans.plan(query, TurnAllowance())
    assert isinstance(tried, NoChain)
    assert 0 < tried.expanded < 200  # Of the 4,000 that may be looked at where nothing waits.
