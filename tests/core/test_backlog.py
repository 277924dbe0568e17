"""What a turn has no time for waits for the next ones: in order, in sight, and each after its node.

Never is time measured here: what is counted is so on any machine.
"""

from collections import deque
from collections.abc import Iterable

from haptera.core.decide.backlog import PLANNED
from haptera.core.decide.decision_loop import DECIDING
from haptera.core.desired.proposals import TAKEN_OVER_MAX
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.core.state.intake import TAKEN_WORK_MAX, TAKING, TAKING_EACH, admit
from haptera.core.state.limits import S
from haptera.core.state.timers import WOKEN_MAX
from haptera.kinds import KINDS
from haptera.model.answers.views import SETTLED, Condition
from haptera.model.changes import Change, Desired, SetDesired, Stored, StoredEntity
from haptera.model.effects import Call, Effect, Publish, Reply, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Asked, Event, Proposed, Ready, Recalled, Ticked, Written
from haptera.model.parts import Context, Look, Manifest
from tests.core.scenario import ATTRIBUTES, BMC, SIDE, row_of, told

FLEET = 300
DECIDED_A_TURN_MAX = TURN_WORK_MAX // DECIDING + 1
RUN = Look("keeper", "look_run", "service", "run", ("stopped", "running"), context=Context.PARENT)
KEEPER = Manifest("keeper", "1", Context.PARENT, (RUN,), ())
WEB = EntityId("service", "web", "n299")


def names(count: int = FLEET) -> list[EntityId]:
    return [node_id(f"n{number:03}") for number in range(count)]


def fleet(services: Iterable[EntityId] = ()) -> Engine:
    """A parent that was just told of its nodes, and is about to look at them."""
    nodes = [StoredEntity(one, ATTRIBUTES, "site", {}, 1) for one in names()]
    on_them = [StoredEntity(one, {}, "site", {}, 1) for one in services]
    catalog = Catalog(KINDS, [BMC, KEEPER])
    return Engine(SIDE, catalog, Stored(1, 1, [*nodes, *on_them], [], {}), 0, S)


def turns(engine: Engine, now: int, *events: Event) -> list[list[Effect]]:
    """The effects of this turn, and of each that follows at once."""
    found = [engine.handle(events, now)]
    while (deadline := engine.deadline()) is not None and deadline <= now:
        found.append(engine.handle([Ticked()], now))
    return found


def looked_at(services: Iterable[EntityId] = ()) -> tuple[Engine, dict[EntityId, int]]:
    """A fleet whose looks are under way, and the call that each one is."""
    engine = fleet(services)
    events = [Ready("bmc"), Ready("keeper")]
    effects = [one for turn in turns(engine, S, *events) for one in turn]
    calls = [one for one in effects if isinstance(one, Call) and one.work is Work.LOOK]
    return engine, {one.entity: one.id for one in calls}


def decided(effects: Iterable[Effect]) -> list[EntityId]:
    """Those of which a turn tells something."""
    return [entity for one in effects if isinstance(one, Publish) for entity in one.entities]


def desire(engine: Engine, *changes: Change) -> Written:
    """All of this is proposed, and durable."""
    effects = [one for turn in turns(engine, S, Proposed(1, changes)) for one in turn]
    (write,) = [one for one in effects if isinstance(one, Write)]
    return Written(write.ticket, 1 + len(changes))


def test_a_burst_of_answers_is_decided_on_in_many_turns_and_of_each_is_told() -> None:
    engine, calls = looked_at()
    found = turns(engine, 2 * S, *(Answered(call, "off", 2 * S) for call in calls.values()))
    counts = [len(decided(one)) for one in found]
    assert max(counts) <= DECIDED_A_TURN_MAX
    assert sum(counts) == FLEET
    assert not engine.rounds.decisions.backlog.waits


def test_a_fleet_that_was_just_loaded_is_told_of_as_it_is_decided_on() -> None:
    first, *others = [len(decided(one)) for one in turns(fleet(), S, Ticked())]
    # The first turn decides on those that it takes over, and on as many others.
    assert first <= 2 * DECIDED_A_TURN_MAX
    assert max(others) <= DECIDED_A_TURN_MAX
    assert first + sum(others) >= FLEET


def test_what_is_desired_of_a_fleet_is_not_said_to_be_so_before_it_was_decided_on() -> None:
    engine, calls = looked_at()
    turns(engine, 2 * S, *(Answered(call, "off", 2 * S) for call in calls.values()))
    changes = [SetDesired(one, "power", "on", "site") for one in names()]

    first = engine.handle([desire(engine, *changes)], 2 * S)

    rows = [engine.table.get(one) for one in names()]
    standing = [(row.stance.condition, row.stance.why) for row in rows if row is not None]
    assert not any(condition in SETTLED for condition, _ in standing)
    assert standing.count((Condition.ACTING, PLANNED)) >= FLEET - DECIDED_A_TURN_MAX
    assert len(decided(first)) <= DECIDED_A_TURN_MAX
    found = [first, *turns(engine, 2 * S, Ticked())]
    assert {one for effects in found for one in decided(effects)} >= {*names()}


def test_a_node_is_decided_on_before_what_is_on_it_though_it_was_put_off() -> None:
    engine, calls = looked_at([WEB])
    nodes = [calls[one] for one in names()]
    told(engine, 2 * S, *(Answered(call, "off", 2 * S) for call in nodes))
    node = node_id("n299")
    assert engine.rounds.decisions.backlog.is_overdue(node)

    told(engine, 2 * S, Asked(WEB))

    assert engine.rounds.decisions.backlog.is_overdue(
        WEB
    ) or not engine.rounds.decisions.backlog.is_overdue(node)


def test_who_was_put_off_has_its_turn_though_something_happens_to_many_others() -> None:
    engine, calls = looked_at()
    told(engine, 2 * S, *(Answered(call, "off", 2 * S) for call in calls.values()))
    last = names()[-1]
    others = names(2 * DECIDED_A_TURN_MAX)
    count = 0
    while engine.rounds.decisions.backlog.is_overdue(last):
        told(engine, 2 * S, *(Asked(one) for one in others))
        count += 1
        assert count < FLEET


def test_many_changes_are_taken_over_in_many_turns_and_answered_after_the_last() -> None:
    engine, _ = looked_at()
    node = names()[0]
    many = [SetDesired(node, "power", value, "site") for value in ("on", "off")] * (
        TAKEN_OVER_MAX + 1
    )
    first, then = desire(engine, *many), desire(engine, SetDesired(node, "power", "on", "user:x"))

    found = turns(engine, S, first, Written(then.ticket, first.revision + 1))

    replies = [[one for one in effects if isinstance(one, Reply)] for effects in found]
    assert replies[0] == []
    assert [one for some in replies for one in some] == [
        Reply(1, first.revision),
        Reply(1, first.revision + 1),
    ]
    assert row_of(engine, node).desired.values["power"] == Desired("on", "user:x")


def test_of_many_times_that_have_come_a_turn_wakes_up_for_so_many() -> None:
    engine = Engine(SIDE, Catalog(KINDS, []), Stored(1, 1, [], [], {}), 0, S)
    for number in range(2 * WOKEN_MAX + 1):
        engine.timers.set(("preview", number), 2 * S)
    assert len(turns(engine, 2 * S)) == 3


def test_events_are_taken_in_their_order_as_many_as_a_turn_has_time_for() -> None:
    events: list[Event] = [Asked(one) for one in names()]
    inbox, taken = deque(events), list[list[Event]]()
    while inbox:
        taken.append(admit(inbox))
    assert [event for some in taken for event in some] == events
    assert {len(some) for some in taken[:-1]} == {TAKEN_WORK_MAX // TAKING}


def test_an_event_that_says_much_leaves_less_time_for_others_and_is_taken_alone_at_last() -> None:
    many = TAKEN_WORK_MAX // TAKING_EACH
    half, whole = Recalled("n000", (WEB,) * (many // 2)), Recalled("n000", (WEB,) * many)
    inbox: deque[Event] = deque([half, half, whole, Ticked()])
    assert [admit(inbox) for _ in range(4)] == [[half], [half], [whole], [Ticked()]]
