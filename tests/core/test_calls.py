"""Calls of a process that is gone: nothing answers them, and each is given up in its turn."""

from dataclasses import replace

from haptera.core.decide.decision_loop import DECIDING
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.core.state.limits import MS, S
from haptera.kinds import KINDS
from haptera.model.changes import Change, Desired, SetDesired, Stored, StoredEntity, Undeclare
from haptera.model.effects import Call, Cancel, Effect, Start, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Answered,
    Ended,
    Event,
    Exited,
    Proposed,
    Ready,
    Ticked,
    WatchReported,
    Written,
)
from haptera.model.parts import Manifest
from tests.core.scenario import ATTRIBUTES, BMC, SIDE, row_of, told
from tests.core.test_supervise import desire, watching

FLEET = 120
GIVEN_UP_A_TURN_MAX = TURN_WORK_MAX // DECIDING + 1
NODES = [node_id(f"n{number:03}") for number in range(FLEET)]
MODULE = EntityId("module", "bmc", None)
DIES = Exited("bmc", "was killed")


def turns(engine: Engine, now: int, *events: Event) -> list[list[Effect]]:
    """The effects of this turn, and of each that follows at once."""
    found = [told(engine, now, *events)]
    while (deadline := engine.deadline()) is not None and deadline <= now:
        found.append(told(engine, now, Ticked()))
    return found


def all_of(engine: Engine, now: int, *events: Event) -> list[Effect]:
    return [one for effects in turns(engine, now, *events) for one in effects]


def fleet(bmc: Manifest = BMC, **desired: str) -> tuple[Engine, dict[EntityId, int]]:
    """A parent that looks at all of its nodes, and the call of each."""
    values = {name: Desired(value, "site") for name, value in desired.items()}
    nodes = [StoredEntity(one, ATTRIBUTES, "site", values, 1) for one in NODES]
    engine = Engine(SIDE, Catalog(KINDS, [bmc]), Stored(1, 1, nodes, [], {}), 0, S)
    return engine, asked(all_of(engine, S, Ready("bmc")), Work.LOOK)


def stepping() -> tuple[Engine, dict[EntityId, int]]:
    """A parent that switches all of its nodes on, and the call of each."""
    engine, looks = fleet(power="on")
    effects = all_of(engine, 2 * S, *(Answered(call, "off", 2 * S) for call in looks.values()))
    writes = [one.ticket for one in effects if isinstance(one, Write)]
    effects = all_of(engine, 2 * S, *(Written(ticket, 2) for ticket in writes))
    return engine, asked(effects, Work.STEP)


def asked(effects: list[Effect], work: Work) -> dict[EntityId, int]:
    calls = [one for one in effects if isinstance(one, Call) and one.work is work]
    assert len(calls) == len({one.entity for one in calls})
    return {one.entity: one.id for one in calls}


def written(engine: Engine, now: int, *changes: Change) -> Written:
    """All of this is proposed, and durable."""
    (write,) = [one for one in told(engine, now, Proposed(1, changes)) if isinstance(one, Write)]
    return Written(write.ticket, 1 + len(changes))


def replaced() -> Engine:
    """A node whose look a module's process has under way, and whose watch the next one has."""
    engine = watching()
    told(engine, S, Ready("bmc"))
    desire(engine, S, 1, settings="{}")
    told(engine, S, Ready("bmc", 2))
    return engine


def lost(engine: Engine, calls: dict[EntityId, int]) -> list[EntityId]:
    """Those whose call is yet to be given up."""
    return [entity for entity, call in calls.items() if engine.hands.calls.lost(call) is not None]


def known(engine: Engine, entity: EntityId) -> dict[str, str]:
    return {name: fact.value for name, fact in row_of(engine, entity).belief.known.items()}


def said(engine: Engine, entity: EntityId) -> str | None:
    """What came of the step under way."""
    row = row_of(engine, entity)
    assert row.work.stepping is not None
    return row.work.stepping.error


def test_very_many_calls_are_given_up_in_many_turns() -> None:
    engine, calls = stepping()
    left = [lost(engine, calls)]
    told(engine, 2 * S, DIES)
    left.append(lost(engine, calls))
    assert len(left[-1]) >= FLEET - GIVEN_UP_A_TURN_MAX
    while left[-1]:
        assert engine.deadline() == 2 * S
        told(engine, 2 * S, Ticked())
        left.append(lost(engine, calls))
        assert len(left[-2]) - len(left[-1]) <= GIVEN_UP_A_TURN_MAX
    assert not engine.hands.calls.are_lost
    assert {said(engine, one) for one in NODES} == {"bmc.switch_on: module bmc was killed"}


def test_what_answers_a_call_that_is_yet_to_be_given_up_counts_for_nothing() -> None:
    engine, calls = stepping()
    told(engine, 2 * S, DIES)
    *_, last = lost(engine, calls)

    told(engine, 2 * S, Ended(calls[last]), WatchReported(calls[last], "on", 2 * S))

    turns(engine, 2 * S, Ticked())
    assert said(engine, last) == "bmc.switch_on: module bmc was killed"
    assert known(engine, last) == {}


def test_a_call_that_is_given_up_after_its_time_was_lost_and_not_late() -> None:
    engine, calls = stepping()
    told(engine, 2 * S, DIES)
    *_, last = lost(engine, calls)
    over_at = 2 * S + (BMC.steps[0].within_ms + 500) * MS

    turns(engine, over_at, Ticked())

    assert said(engine, last) == "bmc.switch_on: module bmc was killed"


def test_a_call_whose_time_is_over_is_given_up_before_those_to_which_nothing_happens() -> None:
    engine, calls = fleet()
    told(engine, S, DIES)
    waiting = lost(engine, calls)
    engine.timers.set(("call", calls[waiting[-1]]), S)

    told(engine, S, Ticked())

    assert waiting[-1] not in lost(engine, calls)
    assert waiting[-2] in lost(engine, calls)


def test_the_next_process_is_asked_once_of_each_though_calls_are_still_to_be_given_up() -> None:
    engine, calls = fleet()
    assert Start("bmc", 2) in told(engine, 2 * S, DIES)
    assert lost(engine, calls)

    effects = all_of(engine, 2 * S, Ready("bmc", 2))

    looks = asked(effects, Work.LOOK)
    assert looks.keys() == {*NODES}
    assert {one.process for one in effects if isinstance(one, Call)} == {2}
    all_of(engine, 2 * S, *(Answered(call, "on", 2 * S) for call in looks.values()))
    assert [known(engine, one) for one in NODES] == [{"power": "on"}] * FLEET


def test_very_many_watches_are_opened_anew_at_the_next_process_in_many_turns() -> None:
    looks = tuple(replace(one, watched=True) for one in BMC.looks)
    engine, _ = fleet(replace(BMC, looks=looks))
    all_of(engine, S, written(engine, S, SetDesired(MODULE, "settings", "{}", "user:x")))

    found = turns(engine, S, Ready("bmc", 2))

    ended = [sum(isinstance(one, Cancel) for one in effects) for effects in found]
    assert max(ended) <= GIVEN_UP_A_TURN_MAX
    assert sum(ended) == FLEET
    effects = [one for some in found for one in some]
    assert asked(effects, Work.WATCH).keys() == {*NODES}
    assert {one.process for one in effects if isinstance(one, Call)} == {2}


def test_what_is_gone_before_its_call_is_given_up_leaves_its_step_and_nothing_else() -> None:
    engine, calls = stepping()
    last = NODES[-1]
    gone = written(engine, 2 * S, Undeclare(last))
    told(engine, 2 * S, DIES)
    assert last in lost(engine, calls)

    effects = all_of(engine, 2 * S, gone)

    assert not [one for one in effects if isinstance(one, Cancel)]
    assert not engine.hands.calls.are_lost
    assert engine.hands.acts.left(last)


def test_a_process_that_dies_over_the_calls_that_it_was_to_finish_loses_them() -> None:
    engine, calls = fleet()
    told(engine, S, written(engine, S, SetDesired(MODULE, "settings", "{}", "user:x")))
    all_of(engine, S, Ready("bmc", 2))

    effects = all_of(engine, S, DIES)

    assert lost(engine, calls) == []
    assert asked(effects, Work.LOOK).keys() == {*NODES}


def test_a_watch_goes_on_where_the_process_dies_that_has_the_look() -> None:
    engine = replaced()
    assert not asked(told(engine, 2 * S, Exited("bmc", "was killed", 1)), Work.WATCH)
    told(engine, 2 * S, WatchReported(3, "on", 2 * S))
    assert known(engine, node_id("n01")) == {"power": "on"}


def test_a_look_is_ended_where_the_process_dies_that_has_the_watch() -> None:
    engine = replaced()
    assert Cancel(2, "bmc", 1) in told(engine, 2 * S, Exited("bmc", "was killed", 2))
    told(engine, 2 * S, Answered(2, "on", 2 * S))
    assert known(engine, node_id("n01")) == {}
