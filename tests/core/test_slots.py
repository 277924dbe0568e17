"""How many calls a module has under way: the rest waits in line, and none of it is a failure."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from haptera.core.act.act import READ_AGAIN_NS
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.slots import Reliability, SlotCaller, SlotClaim, Slots
from haptera.core.state.limits import ANSWER_GRACE_NS, MS, S
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.effects import Call, Effect, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Ended, Event, Ready, Ticked, Written
from haptera.model.parts import Context, Manifest
from tests.core.scenario import ATTRIBUTES, BMC, LOOK, SIDE, told

AT_ONCE = 4
FLEET = 20
NODES = [node_id(f"n{number:02}") for number in range(FLEET)]
WITHIN_NS = LOOK.within_ms * MS


def fleet(*devices: str, desired: str | None = None, bmc: Manifest = BMC) -> Engine:
    """Nodes at these devices, in turns; each a device of its own where none is given."""
    wanted = {} if desired is None else {"power": Desired(desired, "site")}
    nodes = [
        StoredEntity(one, {**ATTRIBUTES, **_at(devices, number)}, "site", wanted, 1)
        for number, one in enumerate(NODES)
    ]
    manifest = replace(bmc, at_once=AT_ONCE, device="bmc", per_device=1)
    return Engine(SIDE, Catalog(KINDS, [manifest]), Stored(1, 1, nodes, [], {}), 0, S)


def _at(devices: Sequence[str], number: int) -> dict[str, str]:
    return {"bmc": devices[number % len(devices)]} if devices else {}


def calls(effects: list[Effect], work: Work = Work.LOOK) -> list[Call]:
    return [one for one in effects if isinstance(one, Call) and one.work is work]


def ready(engine: Engine) -> list[Effect]:
    return at_once(engine, S, Ready("bmc"))


def at_once(engine: Engine, now: int, *events: Event) -> list[Effect]:
    """The effects of this turn and of all that follow at the same time."""
    found = told(engine, now, *events)
    while (deadline := engine.deadline()) is not None and deadline <= now:
        found += told(engine, now, Ticked())
    return found


def failures(engine: Engine) -> int:
    return sum(len(row.attempts.failures) for row in engine.table)


def test_no_more_looks_are_under_way_than_the_module_declares_and_all_come_to_their_turn() -> None:
    engine = fleet()
    under_way, looked_at = calls(ready(engine)), list[EntityId]()
    now = S
    while under_way:
        assert len(under_way) <= AT_ONCE
        now += S // 2
        looked_at += [one.entity for one in under_way]
        # The time limit of each begins when it is called.
        assert {one.deadline_at for one in under_way} == {now - S // 2 + WITHIN_NS}
        under_way = calls(
            at_once(engine, now, *(Answered(one.id, "off", now - 1) for one in under_way))
        )
    assert sorted(looked_at) == NODES
    assert failures(engine) == 0


def test_watches_take_no_slots() -> None:
    watched = replace(BMC, looks=(replace(LOOK, watched=True),))
    effects = ready(fleet(bmc=watched))
    assert len(calls(effects, Work.WATCH)) == FLEET
    assert len(calls(effects)) == AT_ONCE


def test_one_call_at_a_time_goes_to_each_device() -> None:
    engine = fleet("b1", "b2")
    first = calls(ready(engine))
    assert [one.attributes["bmc"] for one in first] == ["b1", "b2"]
    one, _ = first
    (after,) = calls(at_once(engine, 2 * S, Answered(one.id, "off", S)))
    assert after.attributes["bmc"] == "b1"


def test_what_is_at_one_address_is_one_device() -> None:
    system = "10.0.2.1/redfish/v1/Systems/"
    engine = fleet(f"{system}1", f"{system}2", "10.0.2.2")
    first = calls(ready(engine))
    assert [one.attributes["bmc"] for one in first] == [f"{system}1", "10.0.2.2"]
    one, _ = first
    (after,) = calls(at_once(engine, 2 * S, Answered(one.id, "off", S)))
    assert after.attributes["bmc"] == f"{system}2"


def test_devices_that_hang_do_not_keep_healthy_ones_waiting() -> None:
    engine = fleet("hung", "b1", "hung", "b2")
    now, left = S, calls(ready(engine))
    looked_at = set[EntityId]()
    while healthy := [one for one in left if one.attributes["bmc"] != "hung"]:
        now += MS
        looked_at |= {one.entity for one in healthy}
        left = calls(at_once(engine, now, *(Answered(one.id, "off", now) for one in healthy)))
    assert looked_at == {*NODES[1::2]}
    assert now < S + WITHIN_NS


def test_a_call_that_is_not_answered_in_time_gives_its_slot_back() -> None:
    engine = fleet()
    hung = calls(ready(engine))
    assert len(hung) == AT_ONCE
    others = calls(at_once(engine, S + WITHIN_NS + ANSWER_GRACE_NS, Ticked()))
    assert len(others) == AT_ONCE
    assert not {one.entity for one in hung} & {one.entity for one in others}


def test_a_step_waits_for_its_turn_and_says_so() -> None:
    engine = fleet("b1", desired="on")
    ready(engine)
    waiting = [row for row in engine.table if row.id in NODES]
    first = engine.hands.calls.slots
    assert (first.open("bmc"), first.waiting("bmc")) == (1, FLEET - 1)
    now, steps = S, list[EntityId]()
    for _ in range(FLEET * 20):
        pending = [number for number in range(1, 200) if engine.hands.calls.get(number)]
        now += MS
        events = list[Event]()
        for number in pending:
            call = engine.hands.calls.get(number)
            assert call is not None
            stepped = call.entity in steps
            if call.work is Work.STEP:
                steps.append(call.entity)
                events.append(Ended(number))
            else:
                events.append(Answered(number, "on" if stepped else "off", now))
        effects = at_once(engine, now, *events)
        writes = [Written(one.ticket, 2) for one in effects if isinstance(one, Write)]
        at_once(engine, now, *writes)
        assert first.open("bmc") <= 1
        told_why = {row.stance.why for row in waiting if row.stance.why is not None}
        if any("waits for its turn: module bmc has 1 under way at b1" in why for why in told_why):
            break
    else:
        raise AssertionError("no step ever waited")


def test_all_of_a_fleet_on_one_device_comes_to_be_as_desired_one_after_the_other() -> None:
    engine, now, power = fleet("b1", desired="on"), S, dict.fromkeys(NODES, "off")
    under_way = calls(ready(engine))
    for _ in range(FLEET * 20):
        now += MS
        events = list[Event]()
        for call in under_way:
            if call.work is Work.STEP:
                power[call.entity] = "on"
                events.append(Ended(call.id))
            else:
                events.append(Answered(call.id, power[call.entity], now))
        effects = at_once(engine, now, *(events or [Ticked()]))
        while writes := [Written(one.ticket, 2) for one in effects if isinstance(one, Write)]:
            under_way = [*calls(effects), *calls(effects, Work.STEP)]
            effects = at_once(engine, now, *writes)
            effects = [*under_way, *effects]
        under_way = [*calls(effects), *calls(effects, Work.STEP)]
        assert len(under_way) <= 1
    conditions = {row.stance.condition for row in engine.table if row.id in NODES}
    assert conditions == {Condition.CONVERGED}


def test_an_outcome_whose_look_waits_in_line_is_not_decided_on_until_its_turn_comes() -> None:
    engine, now = fleet("b1", desired="on"), S
    under_way, stepped = calls(ready(engine)), set[EntityId]()
    waiting = set[EntityId]()
    while not waiting:
        now += MS
        (call,) = under_way
        if call.work is Work.STEP:
            stepped.add(call.entity)
            effects = at_once(engine, now, Ended(call.id))
        else:
            effects = at_once(engine, now, Answered(call.id, "off", now))
        under_way = []
        while writes := [Written(one.ticket, 2) for one in effects if isinstance(one, Write)]:
            under_way += [*calls(effects), *calls(effects, Work.STEP)]
            effects = at_once(engine, now, *writes)
        under_way += [*calls(effects), *calls(effects, Work.STEP)]
        waiting = {one for one in stepped if engine.hands.calls.is_queued(one, LOOK)}
    # Its device is busy with another's call; time passes, and nothing happens.
    at_once(engine, now + READ_AGAIN_NS, Ticked())
    deadline = engine.deadline()
    assert deadline is not None
    assert deadline > now + 3 * READ_AGAIN_NS


LIMITS = Manifest("m", "1", Context.PARENT, (), (), at_once=4, device="d", per_device=1)
NUMBERS = st.integers(0, 9)
ACTIONS = st.lists(st.tuples(st.sampled_from(["take", "stay", "back", "settle", "rest"]), NUMBERS))


def claim(number: int) -> SlotClaim:
    """Of ten callers, some share a device, some answer, and some keep their place in line."""
    device = None if number == 0 else f"d{number % 4}"
    return SlotClaim(device, Reliability(number % 3), lasts=number % 2 == 0)


def test_what_fails_leaves_slots_to_what_answers_also_where_both_are_at_one_device() -> None:
    slots = Slots(lambda _: LIMITS)
    failing = [SlotCaller("m", node_id(f"f{number}"), "m.look") for number in range(3)]
    first, second, third = (SlotClaim(one, Reliability.FAILING) for one in ("d1", "d2", "d2"))
    # Until anybody answers, all that there are may be theirs.
    assert slots.acquire(SlotCaller("m", node_id("well"), "m.look"), SlotClaim(None), 1)
    assert slots.acquire(failing[0], first, 1)
    assert not slots.acquire(failing[1], second, 1)
    for number in range(2):
        answers = SlotCaller("m", node_id(f"n{number}"), "m.look")
        assert slots.acquire(answers, SlotClaim("d2"), 2) is (number == 0)
    assert not slots.acquire(failing[2], third, 2)
    slots.give_back(SlotCaller("m", node_id("n0"), "m.look"))
    assert slots.take_woken() == {node_id("n1")}
    slots.check()


@given(ACTIONS)
def test_slots_are_never_overdrawn_nor_left_unused_while_somebody_waits(
    actions: list[tuple[str, int]],
) -> None:
    slots, taken = Slots(lambda _: LIMITS), set[int]()
    for time, (what, number) in enumerate(actions):
        caller = SlotCaller("m", node_id(f"n{number}"), "m.look")
        if what == "take" and number not in taken and slots.acquire(caller, claim(number), time):
            taken.add(number)
        elif what == "stay" and number not in taken:
            slots.stay(caller)
        elif what == "back" and number in taken:
            slots.give_back(caller)
            taken.discard(number)
        elif what == "settle" and number not in taken:
            slots.reconcile(caller.entity, ())
        elif what == "rest" and number not in taken:
            slots.rest(caller.entity)
        # Who was granted a slot takes it, or is decided on without.
        for entity in sorted(slots.take_woken()):
            if time % 2:
                woken = int(entity.name.removeprefix("n"))
                assert slots.acquire(SlotCaller("m", entity, "m.look"), claim(woken), time)
                taken.add(woken)
            else:
                slots.reconcile(entity, ())
        slots.check()
        assert len(taken) <= LIMITS.at_once
