"""The engine: events in, all its effects out."""

from dataclasses import replace

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.kinds import KINDS
from haptera.model.changes import (
    Cause,
    CloseIntent,
    Declare,
    Desired,
    OpenIntent,
    SetDesired,
)
from haptera.model.effects import Reply, Start, Work, Write
from haptera.model.events import Answered, Ended, Failed, Proposed, Ready, Ticked, Written
from haptera.model.intent import Intent
from haptera.model.parts import (
    Change,
    EnrolmentLevel,
)
from tests.core.scenario import (
    ATTRIBUTES,
    BMC,
    LOOK,
    NODE,
    ON,
    OTHER,
    SIDE,
    call,
    looked,
    parent,
    row_of,
    stored,
    told,
)


def test_a_node_is_looked_at_meant_to_be_switched_switched_and_looked_at_again() -> None:
    engine = parent(stored(desired={"power": "on"}))
    intent = Intent("a1-1", NODE, "bmc", "switch_on", 3 * S, "boot")

    assert told(engine, S, Ticked()) == [Start("bmc")]
    assert told(engine, 2 * S, Ready("bmc")) == [call(1, Work.LOOK, "look", 3 * S)]
    assert told(engine, 3 * S, Answered(1, "off", 2 * S)) == [Write(1, (OpenIntent(intent),))]
    assert told(engine, 3 * S + MS, Written(1, 4)) == [
        call(2, Work.STEP, "switch_on", 5 * S, "a1-1")
    ]
    assert told(engine, 4 * S, Ended(2)) == [call(3, Work.LOOK, "look", 5 * S)]
    assert told(engine, 4 * S + MS, Answered(3, "on", 4 * S)) == [Write(2, (CloseIntent("a1-1"),))]
    assert told(engine, 4 * S + 2 * MS, Written(2, 5)) == []
    # Nothing is due before a look would have been, had no step been taken.
    assert engine.deadline() == 3 * S + LOOK.every_ms * MS


def test_a_step_that_enrols_is_meant_with_the_level_of_its_module_and_another_with_none() -> None:
    steps = (
        replace(ON, enrols=True),
        replace(ON, name="off", changes=(Change("power", ("on",), "off"),)),
    )
    cloud = replace(BMC, steps=steps, enrolment=EnrolmentLevel.OUT_OF_BAND)
    for found, wanted, level in (("off", "on", EnrolmentLevel.OUT_OF_BAND), ("on", "off", None)):
        engine = Engine(SIDE, Catalog(KINDS, [cloud]), stored(desired={"power": wanted}), 0, S)
        told(engine, S, Ready("bmc"))
        (write,) = told(engine, S, Answered(1, found, S))
        assert isinstance(write, Write)
        (change,) = write.changes
        assert isinstance(change, OpenIntent)
        assert change.level == level


def test_nothing_is_done_before_the_intent_is_durable() -> None:
    engine = looked("off", power="on")

    assert told(engine, 60 * S, Ticked(), Ticked()) == [call(2, Work.LOOK, "look", 61 * S)]


def test_an_intent_that_becomes_durable_too_late_is_closed_without_effect() -> None:
    engine = looked("off", power="on")

    first, *_ = told(engine, 3 * S, Written(1, 4))
    assert first == Write(2, (CloseIntent("a1-1", begun=False),))


def test_what_is_no_longer_desired_is_not_done_though_it_was_meant() -> None:
    engine = looked("off", power="on")
    told(engine, S, Proposed(9, (SetDesired(NODE, "power", "off", "site"),)))

    assert told(engine, S + MS, Written(2, 5), Written(1, 6)) == [
        Reply(9, 5),
        Write(3, (CloseIntent("a1-1", begun=False),)),
    ]


def test_an_intent_of_an_earlier_process_is_read_before_anything_is_done_again() -> None:
    intent = Intent("99-1", NODE, "bmc", "switch_on", S, "boot")
    engine = parent(stored(intent, desired={"power": "on"}))

    assert told(engine, 2 * S, Ready("bmc")) == [
        Start("bmc"),
        call(1, Work.LOOK, "look", 3 * S),
    ]
    early = told(engine, 2 * S + MS, Answered(1, "off", 2 * S))
    assert early == []  # it may come yet: within 2 s it may have begun, and 3 s later take effect
    looks = told(engine, 6 * S, Ticked())
    assert looks == [call(2, Work.LOOK, "look", 7 * S)]
    assert told(engine, 6 * S + MS, Answered(2, "off", 6 * S)) == [
        Write(1, (CloseIntent("99-1"),)),
        Write(2, (OpenIntent(Intent("a1-1", NODE, "bmc", "switch_on", 6 * S + MS, "boot")),)),
    ]


def test_an_intent_of_another_boot_of_the_machine_counts_from_now() -> None:
    intent = Intent("99-1", NODE, "bmc", "switch_on", 999 * S, "another boot")
    engine = parent(stored(intent, desired={"power": "on"}))
    told(engine, 2 * S, Ready("bmc"))

    assert told(engine, 2 * S + MS, Answered(1, "on", 2 * S)) == [Write(1, (CloseIntent("99-1"),))]


def test_a_look_that_fails_makes_its_value_remembered() -> None:
    engine = looked("on", power="on")
    told(engine, 12 * S, Ticked())
    told(engine, 12 * S, Failed(2, "no route to host"))

    row = row_of(engine)
    assert (row.belief.known, row.belief.remembered["power"].value) == ({}, "on")
    assert row.stance.why == "bmc.look: no route to host"


def test_an_answer_to_a_call_that_is_over_changes_nothing() -> None:
    engine = looked("on", power="on")

    assert told(engine, 2 * S, Answered(1, "off", 2 * S), Ended(1), Failed(77, "late")) == []
    assert row_of(engine).belief.known["power"].value == "on"


def test_changes_count_once_they_are_written_and_their_asker_is_told() -> None:
    engine = parent(stored(desired={}))
    changes = (Declare(OTHER, ATTRIBUTES, "site"), SetDesired(OTHER, "power", "on", "site"))

    assert told(engine, S, Proposed(5, changes, 3)) == [Start("bmc"), Write(1, changes, 3)]
    assert engine.table.get(OTHER) is None
    assert told(engine, S, Written(1, 5)) == [Reply(5, 5)]
    row = row_of(engine, OTHER)
    assert (row.desired.revision, row.desired.values) == (5, {"power": Desired("on", "site")})


def test_a_proposal_that_cannot_be_meant_is_refused_before_it_is_written() -> None:
    engine = parent(stored(desired={}))
    engine.handle([Ticked()], S)

    assert told(engine, S, Proposed(5, (SetDesired(OTHER, "power", "on", "site"),))) == [
        Reply(5, None, "node:n02 is not declared", Cause.INVALID)
    ]
