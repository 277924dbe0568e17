"""The engine on a bad day: what is late, old, gone or refused makes no step unread or unwritten."""

from haptera.core.limits import MS, S
from haptera.model.changes import CloseIntent, Declare, OpenIntent, SetDesired, Undeclare
from haptera.model.effects import Cancel, Reply, Work, Write
from haptera.model.events import Answered, Ended, Proposed, Ready, Ticked, Written
from haptera.model.intent import Intent
from tests.core.test_engine import ATTRIBUTES, NODE, call, parent, stored, told

AGAIN = (
    Undeclare(NODE),
    Declare(NODE, ATTRIBUTES, "site"),
    SetDesired(NODE, "power", "on", "site"),
)


def test_an_intent_that_becomes_durable_after_its_entity_was_made_anew_is_not_acted_on() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    told(engine, S, Proposed(9, AGAIN))
    told(engine, S, Answered(1, "off", S))

    assert told(engine, S + MS, Written(1, 6)) == [
        Reply(9, 6),
        Write(3, (CloseIntent("a1-1"),)),
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
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    told(engine, S, Answered(1, "off", S))
    told(engine, S, Written(1, 4))
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
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    told(engine, S, Answered(1, "off", S))
    told(engine, S, Written(1, 4))
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
