"""Module processes: which are started, replaced, left alone, and what becomes of their calls."""

from dataclasses import replace
from typing import Any

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.module_parts import START
from haptera.core.modules.supervise import (
    BLOCKED_TOLD_NS,
    DEATHS_WITHIN_NS,
    RESTARTING,
    VERSION_AGAIN_NS,
)
from haptera.core.state.limits import MS, S
from haptera.core.views.query import detail
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import (
    CloseIntent,
    Declare,
    Desired,
    SetDesired,
    Stored,
    StoredEntity,
    UnsetDesired,
)
from haptera.model.declared.packing import schema_digest
from haptera.model.effects import Call, Cancel, Reply, Start, Stop, Tell, Work, Write
from haptera.model.entity import EntityId
from haptera.model.events import (
    Answered,
    Asked,
    Ended,
    Enrolled,
    Event,
    Exited,
    Failed,
    LoopBlocked,
    Proposed,
    Ready,
    Ticked,
    WatchReported,
    Written,
)
from haptera.model.intent import Intent
from haptera.model.parts import Context, Manifest
from haptera.model.policy import STEPPING
from tests.core import scenario
from tests.core.scenario import (
    BMC,
    LOOK,
    NODE,
    ON,
    SIDE,
    begun,
    call,
    looked,
    parent,
    row_of,
    stored,
    told,
)

MODULE = EntityId("module", "bmc", None)
COOL_DOWN = RESTARTING.cool_down_ms * MS


def desiring(**values: str) -> Stored:
    """A node to look at, and what is desired of the module that does."""
    (node,) = stored(desired={}).entities
    desired = {name: Desired(value, "site") for name, value in values.items()}
    return Stored(7, 4, [node, StoredEntity(MODULE, {}, "site", desired, 4)], [], {})


def watching(**values: str) -> Engine:
    looks = tuple(replace(look, watched=True) for look in BMC.looks)
    return Engine(SIDE, Catalog(KINDS, [replace(BMC, looks=looks)]), desiring(**values), 0, S)


def desire(engine: Engine, now: int, ticket: int, **values: str) -> list[object]:
    """What comes of desiring this of the module, once it is durable; less the reply."""
    changes = tuple(SetDesired(MODULE, name, value, "user:x") for name, value in values.items())
    told(engine, now, Proposed(1, changes))
    return told(engine, now, Written(ticket, 4 + len(changes)))[1:]


def run_of(engine: Engine) -> dict[str, str]:
    row = row_of(engine, MODULE)
    return {name: row.value(name, fact) for name, fact in row.belief.known.items()}


def standing(engine: Engine, entity: EntityId = MODULE) -> tuple[Condition, str | None]:
    return scenario.standing(engine, entity)


def failures(engine: Engine) -> dict[str, int]:
    return row_of(engine).attempts.failures


def die(engine: Engine, now: int, process: int) -> None:
    """The process dies as soon as it serves."""
    told(engine, now, Ready("bmc", process))
    told(engine, now, Exited("bmc", "killed by SIGSEGV", process))


def refuse(engine: Engine, now: int, effects: list[object]) -> list[int]:
    """Find the power off and refuse to switch it on; returns the tickets of what was written."""
    tickets = []
    for effect in (waiting := list(effects)):  # It grows on the way.
        match effect:
            case Write(ticket):
                tickets.append(ticket)
                waiting += told(engine, now, Written(ticket, 4))
            case Call(id=number, work=Work.LOOK):
                waiting += told(engine, now, Answered(number, "off", now))
            case Call(id=number):
                waiting += told(engine, now, Failed(number, "jammed", refused=True))
    return tickets


def dead(engine: Engine) -> int:
    """The module has died too often; returns when it did so last."""
    now = S
    for process in range(1, 7):
        die(engine, now, process)
        if process < 6:
            now += RESTARTING.wait_ms(process, 1.0) * MS
            assert told(engine, now, Ticked()) == [Start("bmc", process + 1)]
    return now


def test_a_module_is_started_when_a_part_of_it_is_first_needed() -> None:
    engine = parent(Stored(7, 0, [], [], {}))
    assert told(engine, S, Ticked()) == []
    assert (standing(engine), run_of(engine)) == ((Condition.IDLE, None), {"run": "stopped"})

    (node,) = stored(desired={}).entities
    declare = Declare(NODE, node.attributes, "site")
    told(engine, S, Proposed(9, (declare,)))
    assert told(engine, S, Written(1, 1)) == [Reply(9, 1), Start("bmc")]
    assert standing(engine) == (Condition.ACTING, "module bmc is starting")

    assert told(engine, 2 * S, Ready("bmc")) == [call(1, Work.LOOK, "look", 3 * S)]
    assert standing(engine) == (Condition.CONVERGED, None)
    assert run_of(engine) == {"run": "running", "applied": "current"}


def test_a_module_that_is_desired_to_run_is_started_before_anything_needs_it() -> None:
    engine = parent(Stored(7, 4, desiring(run="running").entities[1:], [], {}))

    assert told(engine, S, Ticked()) == [Start("bmc")]


def test_a_module_that_is_disabled_runs_for_nobody_and_what_needs_it_says_so() -> None:
    engine = parent(desiring(run="stopped"))
    told(engine, S, Ticked())
    told(engine, S, Proposed(9, (SetDesired(NODE, "power", "on", "site"),)))

    assert told(engine, S, Written(1, 5)) == [Reply(9, 5)]
    assert standing(engine) == (Condition.CONVERGED, None)
    assert standing(engine, NODE) == (Condition.WAITING, "module bmc is disabled")


def test_a_module_that_gets_disabled_finishes_its_steps_and_ends() -> None:
    engine = begun()

    assert desire(engine, S, 2, run="stopped") == []
    assert standing(engine) == (Condition.ACTING, "module bmc finishes its calls")
    assert told(engine, 2 * S, Ended(2)) == [Stop("bmc", 1)]
    assert told(engine, 2 * S, Exited("bmc", "status 0")) == []
    assert (standing(engine), run_of(engine)) == ((Condition.CONVERGED, None), {"run": "stopped"})
    assert standing(engine, NODE) == (Condition.WAITING, "module bmc is disabled")


def test_looks_and_watches_of_a_module_that_gets_disabled_are_ended() -> None:
    engine = watching()
    told(engine, S, Ready("bmc"))

    assert desire(engine, S, 1, run="stopped") == [
        Cancel(2, "bmc", 1),
        Cancel(1, "bmc", 1),
        Stop("bmc", 1),
    ]


def test_what_a_disabled_module_last_read_is_remembered_when_looks_are_overdue() -> None:
    engine = looked("on")
    desire(engine, S, 1, run="stopped")

    told(engine, 31 * S, Ticked())
    row = row_of(engine)
    assert set(row.belief.known) == {"power"}
    told(engine, 32 * S, Ticked())
    assert (set(row.belief.known), set(row.belief.remembered)) == (set(), {"power"})


def test_desiring_something_of_a_module_that_nobody_declared_declares_it() -> None:
    engine = parent(stored(desired={}))
    set_version = SetDesired(MODULE, "version", "1", "user:x")

    assert told(engine, S, Proposed(9, (set_version,)))[1:] == [
        Write(1, (Declare(MODULE, {}, "user:x"), set_version))
    ]
    told(engine, S, Written(1, 5))
    row = row_of(engine, MODULE)
    assert (row.desired.declared, row.desired.values) == (True, {"version": Desired("1", "user:x")})


def test_a_module_that_served_well_is_started_again_at_once() -> None:
    engine = parent(stored(desired={}))
    told(engine, S, Ready("bmc"))

    assert told(engine, 3 * S, Exited("bmc", "killed by SIGKILL")) == [Start("bmc", 2)]
    row = row_of(engine, MODULE)
    tried = [(one.part, one.ago_ms, one.outcome) for one in detail(row, 4 * S).tried]
    assert tried == [(START.path, 1000, "killed by SIGKILL")]


def test_the_back_off_between_early_deaths_doubles_and_is_drawn() -> None:
    draws = iter([0.5, 0.25, 1.0])
    side = replace(SIDE, draw=lambda: next(draws))
    engine = Engine(side, Catalog(KINDS, [BMC]), stored(desired={}), 0, S)
    now = S
    for process, wait in ((1, 500 * MS), (2, 500 * MS), (3, 4 * S)):
        die(engine, now, process)
        assert told(engine, now + wait - 1, Ticked()) == []
        now += wait
        assert told(engine, now, Ticked()) == [Start("bmc", process + 1)]


def test_a_module_that_dies_too_often_is_left_alone_and_no_node_is_blamed() -> None:
    engine = parent(stored(desired={"power": "on"}))
    now = dead(engine)

    words = "killed by SIGSEGV; it failed 6 times within 10 min"
    assert (standing(engine), run_of(engine)) == ((Condition.STUCK, words), {"run": "failed"})
    assert standing(engine, NODE) == (Condition.WAITING, f"module bmc has failed: {words}")
    assert failures(engine) == {}
    assert told(engine, now + COOL_DOWN - 1, Ticked()) == []
    assert told(engine, now + COOL_DOWN, Ticked()) == [Start("bmc", 7)]
    told(engine, now + COOL_DOWN, Ready("bmc", 7))
    assert standing(engine) == (Condition.CONVERGED, None)


def test_a_step_over_which_its_module_died_is_an_attempt_in_the_module_s_words() -> None:
    engine = begun()
    told(engine, 3 * S, Exited("bmc", "killed by SIGKILL"))
    assert told(engine, 3 * S, Ready("bmc", 2)) == [
        replace_process(call(3, Work.LOOK, "look", 4 * S), 2)
    ]

    told(engine, 6 * S, Answered(3, "off", 6 * S))
    assert row_of(engine).attempts.error == "bmc.switch_on: module bmc killed by SIGKILL"
    assert failures(engine) == {"bmc.switch_on": 1}


def test_a_step_whose_module_died_while_its_intent_was_written_is_not_begun() -> None:
    engine = looked("off", power="on")
    told(engine, S, Exited("bmc", "killed by SIGKILL"))

    assert told(engine, S, Written(1, 4)) == [Write(2, (CloseIntent("a1-1", begun=False),))]
    assert failures(engine) == {}
    why = "module bmc waits to be restarted: killed by SIGKILL"
    assert standing(engine, NODE) == (Condition.WAITING, why)


def test_what_a_module_read_that_has_failed_is_remembered_at_once() -> None:
    # Without waiting, so that no look is overdue by then.
    side = replace(SIDE, draw=lambda: 0.0)
    engine = looked("on", Engine(side, Catalog(KINDS, [BMC]), stored(desired={}), 0, S))
    row = row_of(engine)
    for process in range(1, 7):
        assert set(row.belief.known) == {"power"}
        told(engine, S + process * MS, Exited("bmc", "status 1", process))
        told(engine, S + process * MS + MS, Ticked())
    assert (set(row.belief.known), set(row.belief.remembered)) == (set(), {"power"})


@pytest.mark.parametrize(
    "event", [Asked(MODULE), Proposed(1, (SetDesired(MODULE, "run", "running", "user:x"),))]
)
def test_a_failed_module_is_tried_again_when_asked_or_when_its_desired_state_changes(
    event: Event,
) -> None:
    engine = parent(desiring())
    now = dead(engine)

    first = told(engine, now, event)
    assert Start("bmc", 7) in (*first, *told(engine, now, Written(1, 5)))
    die(engine, now, 7)
    assert run_of(engine) == {"run": "stopped"}, "its deaths are counted anew"


def test_deaths_that_are_far_apart_do_not_add_up() -> None:
    engine = parent(stored(desired={}))
    for process in range(1, 20):
        told(engine, process * DEATHS_WITHIN_NS // 5, Ready("bmc", process))
        died_at = process * DEATHS_WITHIN_NS // 5 + 2 * S
        effects = told(engine, died_at, Exited("bmc", "killed by SIGKILL", process))
        assert effects[-1] == Start("bmc", process + 1)


def test_a_new_process_takes_over_when_it_is_ready_and_calls_stay_where_they_are() -> None:
    engine = watching()
    told(engine, S, Ready("bmc"))  # calls 1, a watch, and 2, a look

    assert desire(engine, S, 1, settings='{"a": 1}') == [Start("bmc", 2, '{"a": 1}')]
    assert standing(engine) == (Condition.ACTING, "module bmc is being replaced")
    assert run_of(engine) == {"run": "running", "applied": "stale"}
    watch = call(3, Work.WATCH, "look", 0)
    assert told(engine, 2 * S, Ready("bmc", 2)) == [
        Cancel(1, "bmc", 1),
        Call(*[getattr(watch, name) for name in watch.__struct_fields__[:-4]], None, process=2),
    ]
    assert told(engine, 2 * S, Answered(2, "on", S)) == [Stop("bmc", 1)]
    assert told(engine, 2 * S, Exited("bmc", "status 0", 1), WatchReported(3, "off", 2 * S)) == []
    assert run_of(engine) == {"run": "running", "applied": "current"}
    assert standing(engine) == (Condition.CONVERGED, None)


def test_a_step_in_flight_ends_once_with_the_process_that_it_was_given_to() -> None:
    engine = begun()
    desire(engine, S, 2, settings="{}")

    assert told(engine, S + MS, Ready("bmc", 2)) == []
    assert told(engine, 2 * S, Ended(2)) == [
        Stop("bmc", 1),
        replace_process(call(3, Work.LOOK, "look", 3 * S), 2),
    ]


def test_what_was_given_up_is_tried_at_once_when_another_process_takes_over() -> None:
    engine = parent(stored(desired={"power": "on"}))
    now, tickets = S, refuse(engine, S, told(engine, S, Ready("bmc")))
    while failures(engine) != {"bmc.switch_on": STEPPING.attempts}:
        now += STEPPING.backoff_ms_max * MS
        tickets += refuse(engine, now, told(engine, now, Ticked()))

    desire(engine, now, tickets[-1] + 1, settings="{}")
    effects = told(engine, now, Ready("bmc", 2))
    assert failures(engine) == {}
    assert [type(one) for one in effects] == [Stop, Write]


MISMATCH = (
    "version 2 is desired, and version 1 is installed: install 2, or haptera unset module:bmc"
    " version; the process before it goes on serving"
)


def test_a_new_process_of_another_version_than_is_desired_does_not_take_over() -> None:
    engine = parent(stored(desired={}))
    told(engine, S, Ready("bmc", 1, "1"))
    told(engine, S, Answered(1, "on", S))

    assert desire(engine, S, 1, version="2") == [Start("bmc", 2)]
    assert told(engine, S, Ready("bmc", 2, "1")) == [Stop("bmc", 2)]
    assert standing(engine) == (Condition.STUCK, MISMATCH)
    assert run_of(engine) == {"run": "running", "applied": "stale"}
    again_at = S + VERSION_AGAIN_NS
    assert Start("bmc", 3) not in told(engine, again_at - 1, Ticked())
    assert Start("bmc", 3) in told(engine, again_at, Ticked())
    told(engine, again_at, Ready("bmc", 3, "2"))
    assert run_of(engine) == {"run": "running", "applied": "current"}


def test_a_version_that_is_not_installed_is_no_death_however_often_it_is_tried() -> None:
    engine = parent(desiring(version="2"))
    assert told(engine, S, Ticked()) == [Start("bmc", 1)]
    for process in range(1, 10):
        now = S + process * VERSION_AGAIN_NS
        told(engine, now, Ready("bmc", process, "1"))
        assert told(engine, now, Exited("bmc", "status 0", process)) == []
        assert told(engine, now + VERSION_AGAIN_NS, Ticked()) == [Start("bmc", process + 1)]
    text = MISMATCH.partition(";")[0]
    assert standing(engine) == (Condition.STUCK, text)
    assert engine.hands.supervisor.blocked("bmc") == f"module bmc waits to be restarted: {text}"
    assert not engine.hands.supervisor.failed("bmc")


def test_what_is_installed_takes_over_when_the_version_that_it_is_not_is_desired_no_more() -> None:
    engine = parent(stored(desired={}))
    told(engine, S, Ready("bmc", 1, "0"))
    told(engine, S, Answered(1, "on", S))
    desire(engine, S, 1, version="2")
    told(engine, S, Ready("bmc", 2, "1"))

    told(engine, 2 * S, Proposed(1, (UnsetDesired(MODULE, "version"),)))
    assert Start("bmc", 3) in told(engine, 2 * S, Written(2, 7))
    assert Stop("bmc", 1) in told(engine, 2 * S, Ready("bmc", 3, "1"))
    assert standing(engine) == (Condition.CONVERGED, None)


def test_a_module_whose_code_a_person_has_loaded_anew_is_replaced() -> None:
    engine = parent(stored(desired={}))
    told(engine, S, Ready("bmc", 1, "1"))
    told(engine, S, Answered(1, "on", S))

    assert desire(engine, S, 1, reloaded="20261123T010000Z") == [Start("bmc", 2)]
    assert told(engine, S, Ready("bmc", 2, "1")) == [Stop("bmc", 1)]
    assert standing(engine) == (Condition.CONVERGED, None)


def test_a_function_that_blocked_all_calls_of_its_module_is_named_there_for_a_while() -> None:
    engine = parent(stored(desired={}))
    told(engine, S, Ready("bmc"))
    text = "look blocks the event loop at bmc.py:7, for 3 s"

    told(engine, 2 * S, LoopBlocked("bmc", text), LoopBlocked("bmc", "of a process before it", 7))
    assert standing(engine) == (Condition.STUCK, text)
    told(engine, 2 * S + BLOCKED_TOLD_NS - 1, Ticked())
    assert standing(engine) == (Condition.STUCK, text)
    told(engine, 2 * S + BLOCKED_TOLD_NS, Ticked())
    assert standing(engine) == (Condition.CONVERGED, None)


def test_a_replacement_that_dies_leaves_the_old_process_serving() -> None:
    engine = looked("on")
    desire(engine, S, 1, settings='{"a": 1}')

    told(engine, S, Exited("bmc", "status 1: KeyError: 'a'", 2))
    assert standing(engine) == (Condition.STUCK, "status 1: KeyError: 'a'")
    assert run_of(engine) == {"run": "running", "applied": "stale"}
    told(engine, S, Proposed(1, (UnsetDesired(MODULE, "settings"),)))
    told(engine, S, Written(2, 7))
    assert standing(engine) == (Condition.CONVERGED, None)


def test_parts_that_a_new_process_declares_are_planned_with_and_neighbours_are_told() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"), Enrolled("n01", 1))
    told(engine, S, Answered(1, "off", S))
    told(engine, S, Written(1, 4))
    told(engine, 2 * S, Failed(2, "not supported", refused=True))
    desire(engine, 2 * S, 3, settings="{}")

    press = replace(ON, name="press")
    declared = replace(BMC, version="2", steps=(press,))
    told(engine, 3 * S, Ready("bmc", 2, "2", declared))
    meant = Intent("a1-2", NODE, "bmc", "press", 3 * S, "boot")
    row = row_of(engine)
    assert row.work.stepping is not None
    assert row.work.stepping.intent == meant
    effects = told(engine, 12 * S, Ticked())
    said = {effect.message.schema for effect in effects if isinstance(effect, Tell)}
    assert said == {schema_digest(KINDS.values(), engine.catalog.parts())}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"looks": (replace(LOOK, kind="lamp"),)}, "module bmc: serves kind 'lamp', which is not"),
        ({"looks": (replace(LOOK, every_ms=0),)}, "bmc.look: a time of 0 ms"),
        ({"context": Context.SELF}, "runs at self, not parent"),
    ],
)
def test_parts_that_cannot_be_planned_with_are_refused_and_the_old_process_serves_on(
    changes: dict[str, Any], text: str
) -> None:
    engine = looked("on")
    desire(engine, S, 1, settings="{}")

    declared = replace(BMC, **changes)
    assert told(engine, S, Ready("bmc", 2, "1", declared)) == [Stop("bmc", 2)]
    condition, why = standing(engine)
    assert condition is Condition.STUCK
    assert why is not None
    assert why.startswith(f"declares a contradiction: {text}")
    assert engine.catalog.manifests["bmc"] == BMC
    assert run_of(engine) == {"run": "running", "applied": "stale"}


@pytest.mark.parametrize("text", ["[1]", "{", "nonsense"])
def test_settings_are_a_json_object(text: str) -> None:
    engine = parent(stored(desired={}))

    (reply,) = told(engine, S, Proposed(9, (SetDesired(MODULE, "settings", text, "site"),)))[1:]
    assert isinstance(reply, Reply)
    assert reply.refusal is not None
    assert "module.settings: no JSON object" in reply.refusal


@pytest.mark.parametrize(
    "text", ['{"a":"b\\u0000"}', '{"a\\u0000":1}', '{"a":[{"b":{"c":"\\u0000"}}]}']
)
def test_no_text_in_settings_has_nul_however_deep(text: str) -> None:
    engine = parent(stored(desired={}))

    (reply,) = told(engine, S, Proposed(9, (SetDesired(MODULE, "settings", text, "site"),)))[1:]
    assert isinstance(reply, Reply)
    assert reply.refusal is not None
    assert "module.settings: settings have the character U+0000" in reply.refusal


def replace_process(one: Call, process: int) -> Call:
    fields = {name: getattr(one, name) for name in one.__struct_fields__}
    return Call(**{**fields, "process": process})


def test_a_controller_runs_from_the_start_on_for_nobody_will_call_it() -> None:
    keeper = Manifest("keep-on", "", Context.PARENT, (), (), controller=True)
    engine = Engine(SIDE, Catalog(KINDS, [BMC, keeper]), Stored(7, 4, [], [], {}), 0, S)

    assert told(engine, S) == [Start("keep-on", 1)]
    assert told(engine, S, Ready("keep-on", 1)) == []
    assert told(engine, 5 * S, Exited("keep-on", "status 0", 1)) == [Start("keep-on", 2)]


def test_an_exclusive_module_ends_before_the_next_process_of_it_starts() -> None:
    catalog = Catalog(KINDS, [replace(BMC, exclusive=True)])
    engine = Engine(SIDE, catalog, desiring(), 0, S)
    told(engine, S, Ready("bmc"))

    # The look under way is cancelled, for nothing serves it; then its process may go.
    assert desire(engine, S, 1, settings="{}") == [Cancel(1, "bmc"), Stop("bmc", 1)]
    assert standing(engine) == (Condition.ACTING, "module bmc finishes its calls")
    assert told(engine, 2 * S, Exited("bmc", "ended", 1)) == [Start("bmc", 2, "{}")]
    told(engine, 2 * S, Ready("bmc", 2))
    assert standing(engine)[0] is Condition.CONVERGED
