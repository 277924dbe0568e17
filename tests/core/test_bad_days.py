"""The engine on a bad day: what is late, old, gone or refused makes no step unread or unwritten."""

from dataclasses import replace
from itertools import pairwise

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import BACKOFF_NS, MS, S
from haptera.core.views.query import detail, view
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition, TriedView
from haptera.model.changes import (
    CloseIntent,
    Declare,
    OpenIntent,
    SetDesired,
    Undeclare,
    UnsetDesired,
)
from haptera.model.effects import Call, Cancel, Reply, Work, Write
from haptera.model.entity import EntityId
from haptera.model.events import (
    Answered,
    Asked,
    Ended,
    Exited,
    Failed,
    Proposed,
    Ready,
    Ticked,
    Unwritten,
    WatchReported,
    Written,
)
from haptera.model.intent import Intent
from haptera.model.parts import Change
from tests.core.scenario import (
    ATTRIBUTES,
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
    standing,
    stored,
    told,
)

AGAIN = (
    Undeclare(NODE),
    Declare(NODE, ATTRIBUTES, "site"),
    SetDesired(NODE, "power", "on", "site"),
)


def watching(desired: dict[str, str]) -> Engine:
    """A parent whose only look is also watched: its call 1."""
    looks = tuple(replace(look, watched=True) for look in BMC.looks)
    catalog = Catalog(KINDS, [replace(BMC, looks=looks)])
    return Engine(SIDE, catalog, stored(desired=desired), 0, S)


def booting(desired: dict[str, str]) -> Engine:
    """A parent whose step should also bring up the agent."""
    boot = replace(ON, changes=(*ON.changes, Change("agent", ("*",), "up", expected=True)))
    catalog = Catalog(KINDS, [replace(BMC, steps=(boot,))])
    return Engine(SIDE, catalog, stored(desired=desired), 0, S)


def test_an_intent_that_becomes_durable_after_its_entity_was_made_anew_is_not_acted_on() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    told(engine, S, Proposed(9, AGAIN))
    told(engine, S, Answered(1, "off", S))

    assert told(engine, S + MS, Written(1, 6)) == [
        Reply(9, 6),
        Write(3, (CloseIntent("a1-1", begun=False),)),
        call(2, Work.LOOK, "look", 2 * S + MS),
    ]
    assert told(engine, S + 2 * MS, Written(2, 7), Written(3, 8)) == []
    second = Intent("a1-2", NODE, "bmc", "switch_on", S + 3 * MS, "boot")
    assert told(engine, S + 3 * MS, Answered(2, "off", S + 2 * MS)) == [
        Write(4, (OpenIntent(second),))
    ]


def test_an_answer_for_an_entity_that_was_made_anew_in_the_same_turn_changes_nothing() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"), Proposed(9, AGAIN))

    assert told(engine, S + MS, Written(1, 6), Answered(1, "off", S)) == [
        Reply(9, 6),
        Cancel(1, "bmc"),
        call(2, Work.LOOK, "look", 2 * S + MS),
    ]


def test_a_step_that_outlives_its_entity_is_read_before_the_entity_is_acted_on_again() -> None:
    engine = begun()
    told(engine, S, Proposed(9, AGAIN))
    assert told(engine, 2 * S, Written(2, 7)) == [
        Reply(9, 7),
        Cancel(2, "bmc"),
        call(3, Work.LOOK, "look", 3 * S),
    ]
    assert told(engine, 2 * S + MS, Answered(3, "off", 2 * S)) == []

    # Begun within 2 s, it may take effect for 3 s more.
    assert told(engine, 6 * S, Ticked()) == [call(4, Work.LOOK, "look", 7 * S)]
    closed, opened = told(engine, 6 * S + MS, Answered(4, "off", 6 * S))
    assert closed == Write(3, (CloseIntent("a1-1"),))
    assert isinstance(opened, Write)


def test_a_step_whose_entity_never_comes_back_is_over_when_it_can_have_no_effect() -> None:
    engine = begun()
    told(engine, S, Proposed(9, (Undeclare(NODE),)))

    assert told(engine, 2 * S, Written(2, 5)) == [Reply(9, 5), Cancel(2, "bmc")]
    assert told(engine, 2 * S, Ended(2)) == []
    assert engine.deadline() == 6 * S
    assert told(engine, 6 * S, Ticked()) == [Write(3, (CloseIntent("a1-1"),))]


def test_of_two_intents_that_a_full_disk_left_the_later_one_is_read() -> None:
    first = Intent("98-1", NODE, "bmc", "switch_on", S, "boot")
    second = Intent("99-1", NODE, "bmc", "switch_on", 9 * S, "boot")
    engine = parent(stored(first, second, desired={"power": "on"}))

    assert told(engine, 10 * S, Ready("bmc"))[0] == Write(1, (CloseIntent("98-1"),))
    assert told(engine, 10 * S, Answered(1, "off", 10 * S)) == []


def power_of(engine: Engine) -> tuple[str | None, str | None]:
    """What is known of the node's power, and what is remembered."""
    row = row_of(engine)
    known, remembered = row.belief.known.get("power"), row.belief.remembered.get("power")
    return (
        None if known is None else known.value,
        None if remembered is None else remembered.value,
    )


def test_a_report_that_is_older_than_what_is_known_changes_nothing() -> None:
    engine = watching(desired={"power": "on"})
    told(engine, S, Ready("bmc"))
    told(engine, 3 * S, Answered(2, "on", 2 * S))

    assert told(engine, 4 * S, WatchReported(1, "off", S)) == []
    assert power_of(engine) == ("on", None)


def test_what_a_module_reports_of_a_call_that_watches_nothing_changes_nothing() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    assert told(engine, S + MS, WatchReported(1, "on", S)) == []
    told(engine, 2 * S, Answered(1, "off", 2 * S))
    told(engine, 2 * S, Written(1, 6))
    step = 2
    assert told(engine, 2 * S + MS, WatchReported(step, "on", 2 * S)) == []
    assert power_of(engine) == ("off", None)


def test_what_a_module_says_it_saw_at_a_time_to_come_is_not_believed() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    told(engine, 2 * S, Answered(1, "on", 9 * S))
    assert power_of(engine) == (None, None)
    assert row_of(engine).attempts.error == "bmc.look: answered with a reading time in the future"


def test_what_a_watch_reports_while_a_step_is_under_way_is_looked_at() -> None:
    engine = watching(desired={"power": "on"})
    told(engine, S, Ready("bmc"))
    told(engine, S, Answered(2, "off", S))
    told(engine, S, Written(1, 4))
    told(engine, 2 * S, Ended(3))
    told(engine, 2 * S, Answered(4, "off", 2 * S))

    # The stream may be slow: what it tells at 5 s may be how it was before the step.
    assert told(engine, 5 * S, WatchReported(1, "off", 5 * S)) == [
        call(5, Work.LOOK, "look", 6 * S)
    ]  # fmt: skip
    assert told(engine, 5 * S, Answered(5, "on", 5 * S)) == [Write(2, (CloseIntent("a1-1"),))]


def test_what_nobody_can_look_at_any_more_is_remembered_in_the_end() -> None:
    engine = looked("on", power="on")
    told(engine, 2 * S, Exited("bmc", "was killed"))
    while (due := engine.deadline()) is not None and due <= 32 * S:
        told(engine, due, Ticked())

    assert power_of(engine) == (None, "on")


def test_after_a_long_pause_nothing_is_done_on_what_was_read_before_it() -> None:
    engine = looked("off")
    told(engine, 2 * S, Proposed(9, (SetDesired(NODE, "power", "on", "site"),)))

    assert told(engine, 92 * S, Written(1, 4)) == [Reply(9, 4), call(2, Work.LOOK, "look", 93 * S)]


def test_a_step_that_had_no_effect_is_not_taken_again_at_once() -> None:
    engine = begun(booting({"power": "on", "agent": "up"}))
    told(engine, 2 * S, Ended(2))
    told(engine, 2 * S, Answered(3, "off", 2 * S))
    told(engine, 5 * S, Ticked())

    assert told(engine, 5 * S, Answered(4, "off", 5 * S)) == [Write(2, (CloseIntent("a1-1"),))]
    assert row_of(engine).stance.why == "bmc.switch_on: returned, but power is off"


def test_a_disk_that_is_too_slow_to_act_on_is_named_and_given_time() -> None:
    engine = looked("off", power="on")

    assert told(engine, 3 * S, Written(1, 4)) == [Write(2, (CloseIntent("a1-1", begun=False),))]
    assert row_of(engine).stance.why == "bmc.switch_on: not started: its intent was stored too late"


def test_the_error_of_a_look_is_over_once_the_look_succeeds() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    told(engine, S, Failed(1, "no route to host"))
    told(engine, 5 * S, Ticked())
    told(engine, 5 * S, Answered(2, "off", 5 * S))

    assert standing(engine) == (
        Condition.ACTING,
        "bmc.switch_on: is about to run",
    )


def test_what_was_read_at_the_moment_of_the_intent_says_nothing_of_its_outcome() -> None:
    intent = Intent("99-1", NODE, "bmc", "switch_on", 2 * S, "boot")
    engine = parent(stored(intent, desired={"power": "on"}))
    told(engine, S, Ready("bmc"))

    assert told(engine, 2 * S, Answered(1, "on", 2 * S)) == [call(2, Work.LOOK, "look", 3 * S)]
    assert told(engine, 3 * S, Answered(2, "on", 2 * S + 1)) == [Write(1, (CloseIntent("99-1"),))]


def test_an_outcome_that_was_seen_before_the_intent_is_looked_at_again() -> None:
    engine = begun()
    told(engine, 2 * S, Ended(2))

    assert told(engine, 3 * S, Answered(3, "on", S)) == [call(4, Work.LOOK, "look", 4 * S)]


def test_a_step_is_not_over_because_nobody_can_look_at_its_outcome_any_more() -> None:
    engine = begun()
    told(engine, 2 * S, Ended(2))
    told(engine, 2 * S, Proposed(9, (Declare(NODE, {"platform": "other"}, "site"),)))

    assert told(engine, 2 * S, Written(2, 5)) == [Reply(9, 5), Cancel(3, "bmc")]
    assert told(engine, 5 * S, Ticked()) == [Write(3, (CloseIntent("a1-1"),))]


def test_between_two_attempts_passes_the_share_of_the_back_off_that_was_drawn() -> None:
    draws = iter([0.25, 0.5])
    side = replace(SIDE, draw=lambda: next(draws))
    engine = Engine(side, Catalog(KINDS, [BMC]), stored(desired={"power": "on"}), 0, S)
    told(engine, S, Ready("bmc"))

    assert told(engine, S, Failed(1, "no route to host")) == []
    assert told(engine, S + ON.policy.backoff_ms * MS // 4 - 1, Ticked()) == []
    assert told(engine, S + ON.policy.backoff_ms * MS // 4, Ticked()) == [
        call(2, Work.LOOK, "look", 3 * S)
    ]
    assert told(engine, 2 * S, Failed(2, "no route to host")) == []
    assert told(engine, 2 * S + ON.policy.backoff_ms * MS - 1, Ticked()) == []
    assert told(engine, 2 * S + ON.policy.backoff_ms * MS, Ticked()) == [
        call(3, Work.LOOK, "look", 7 * S)
    ]


def test_what_failed_is_tried_at_once_when_a_person_asks_or_desires_something_else() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    told(engine, S, Failed(1, "no route to host"))
    assert told(engine, S + MS, Ticked()) == []

    assert told(engine, S + 2 * MS, Asked(NODE)) == [call(2, Work.LOOK, "look", 2 * S + 2 * MS)]
    told(engine, 2 * S, Failed(2, "no route to host"))
    told(engine, 2 * S, Proposed(9, (SetDesired(NODE, "agent", "up", "site"),)))
    assert told(engine, 2 * S + MS, Written(1, 4)) == [
        Reply(9, 4),
        call(3, Work.LOOK, "look", 3 * S + MS),
    ]


def test_what_was_tried_is_kept_with_what_came_of_it() -> None:
    engine = begun()
    told(engine, 2 * S, Failed(2, "the interlock is open", refused=True))

    row = row_of(engine)
    assert detail(row, 5 * S).tried == [
        TriedView("bmc.switch_on", 3_000, "the interlock is open"),
    ]
    assert view(row, 5 * S).tried == []


def test_a_full_disk_does_not_count_against_the_device() -> None:
    engine = looked("off", power="on")
    now = S
    for ticket in range(1, 2 * ON.policy.attempts):
        told(engine, now, Unwritten(ticket, "disk is full"))
        now += BACKOFF_NS
        effects = told(engine, now, Ticked())
        assert any(isinstance(one, Write) for one in effects)
        for look in [one for one in effects if isinstance(one, Call)]:
            told(engine, now, Answered(look.id, "off", now))


def test_what_does_not_last_is_done_again_ever_more_rarely_and_that_is_said() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    now, begun, answers = S, [], [Answered(1, "off", S)]
    whys: set[str | None] = set()
    while now < 200 * S:
        effects = told(engine, now, *answers)
        answers = []
        row = row_of(engine)
        whys.add(row.stance.why)
        if "several times" in str(row.stance.why):
            assert (view(row, now).again_in_ms or 0) > 0
        for effect in effects:
            match effect:
                case Write(ticket, (OpenIntent(),)):
                    begun.append(now // S)
                    answers.append(Written(ticket, 4))
                case Call(id, Work.STEP):
                    answers.append(Ended(id))
                case Call(id, Work.LOOK):
                    # It is seen to be on after each step, and off whenever it is looked at later.
                    is_on = row.work.stepping is not None and row.work.stepping.begun
                    note = None if is_on else "the fuse blew"
                    answers.append(Answered(id, "on" if is_on else "off", now + MS, note))
        now += S

    gaps = [late - early for early, late in pairwise(begun)]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 2 * gaps[0]
    text = "bmc.switch_on was repeated several times: its effect does not last"
    assert f"{text}; power is off: the fuse blew" in whys


LONG = replace(ON, within_ms=900_000, late_ms=1_000, ends_with_call=True)
LONG_BMC = replace(BMC, steps=(LONG,))


def long(*intents: Intent) -> Engine:
    """A parent whose only step takes up to 15 minutes, and ends with its call."""
    return Engine(SIDE, Catalog(KINDS, [LONG_BMC]), stored(*intents, desired={"power": "on"}), 0, S)


def test_what_ends_with_its_call_is_begun_again_soon_after_its_daemon_died() -> None:
    engine = long(Intent("99-1", NODE, "bmc", "switch_on", MS, "boot"))
    told(engine, S, Ready("bmc"))

    assert told(engine, S + MS, Answered(1, "off", S)) == []  # it may come for a second yet
    assert told(engine, 2 * S, Ticked()) == [call(2, Work.LOOK, "look", 3 * S)]
    assert told(engine, 2 * S + MS, Answered(2, "off", 2 * S)) == [
        Write(1, (CloseIntent("99-1"),)),
        Write(2, (OpenIntent(Intent("a1-1", NODE, "bmc", "switch_on", 2 * S + MS, "boot")),)),
    ]


def test_what_ends_with_its_call_is_read_soon_after_its_call_failed() -> None:
    engine = begun(long())
    told(engine, 2 * S, Failed(2, "its process died"))

    assert told(engine, 3 * S, Answered(3, "off", 3 * S)) == [Write(2, (CloseIntent("a1-1"),))]


def test_what_a_step_that_failed_was_not_to_change_is_looked_at_at_once() -> None:
    busy = replace(LOOK, name="busy", at="busy", outcomes=("free", "busy"))
    catalog = Catalog(KINDS, [replace(BMC, looks=(LOOK, busy))])
    engine = Engine(SIDE, catalog, stored(desired={"power": "on"}), 0, S)
    told(engine, S, Ready("bmc"))
    told(engine, S, Answered(1, "free", S), Answered(2, "off", S))
    told(engine, S, Written(1, 4))

    assert told(engine, 2 * S, Failed(3, "the interlock is open", refused=True)) == [
        Write(2, (CloseIntent("a1-1", begun=False),)),
        call(4, Work.LOOK, "busy", 3 * S),
    ]


def test_what_its_controller_has_halted_is_stuck_and_says_why_until_it_goes_on() -> None:
    roll = EntityId("roll", "b", None)
    engine = parent(stored(desired={}))
    refused = "system:compute@n2: it ended by itself: no configuration"
    halts = SetDesired(roll, "halted", refused, "user:eve")
    told(engine, S, Proposed(1, (Declare(roll, {}, "user:eve"), halts)))
    told(engine, S, Written(1, 4))
    row = row_of(engine, roll)
    halted = view(row, S)
    assert (halted.condition, halted.why, halted.unblock) == (
        Condition.STUCK,
        f"halted: {refused}",
        "haptera roll resume NAME, or undo or abort",
    )

    told(engine, S, Proposed(2, (UnsetDesired(roll, "halted"),)))
    told(engine, S, Written(2, 5))
    assert view(row, S).condition is Condition.IDLE
