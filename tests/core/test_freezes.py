"""Freezes: what is looked at, what is not begun, and when it goes on."""

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import BACKOFF_NS, MS, S
from haptera.core.state.row import EntityState
from haptera.core.state.rules import ASKED_MAX, NOTHING, Rules
from haptera.core.state.table import EntityTable
from haptera.core.views.query import view
from haptera.core.views.unblock import unblock
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import (
    Cause,
    Change,
    CloseIntent,
    Declare,
    Desired,
    OpenIntent,
    SetDesired,
    Stored,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.effects import Call, Reply, Start, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Answered,
    Ended,
    Proposed,
    Ready,
    Ticked,
    Unwritten,
    WallClockSet,
    Written,
)
from haptera.model.intent import Intent
from haptera.model.parts import Change as Brings
from haptera.model.parts import Look, Manifest, Step
from haptera.selectors.selector import parse_selector
from tests.core.scenario import (
    ATTRIBUTES,
    BMC,
    NODE,
    PARENT,
    SIDE,
    call,
    looked,
    parent,
    row_of,
    standing,
    told,
)

FREEZE = EntityId("freeze", "f1", None)
# 2026-11-21 18:00 UTC is when the clock since boot shows 100 s.
UNTIL_S = 1_795_284_000
CLOCKED = WallClockSet((UNTIL_S - 100) * S)
WHY = "frozen by user:eve until 2026-11-21 18:00 UTC: board swap"


def freeze(of: str = "n01", until_s: int | None = UNTIL_S) -> StoredEntity:
    values: dict[str, str | int] = {"of": of, "reason": "board swap"}
    values |= {} if until_s is None else {"until_s": until_s}
    desired = {name: Desired(value, "user:eve") for name, value in values.items()}
    return StoredEntity(FREEZE, {}, "user:eve", desired, 4)


def engine_with(*freezes: StoredEntity, intents: tuple[Intent, ...] = ()) -> Engine:
    node = StoredEntity(NODE, ATTRIBUTES, "site", {"power": Desired("on", "site")}, 3)
    return parent(Stored(7, 4, [node, *freezes], list(intents), {}))


def declared(of: str = "n01") -> tuple[Change, ...]:
    return (
        Declare(FREEZE, {}, "user:eve"),
        SetDesired(FREEZE, "of", of, "user:eve"),
        SetDesired(FREEZE, "reason", "board swap", "user:eve"),
    )


def test_what_another_parent_keeps_is_told_to_be_frozen_too_for_as_long_as_it_is() -> None:
    """The root begins nothing there, but it is where people ask what is frozen."""
    kept = StoredEntity(NODE, {**ATTRIBUTES, "parents": "m1"}, "site", {}, 3)
    middle = StoredEntity(node_id("m1"), {}, "site", {}, 3)
    engine = parent(Stored(7, 4, [kept, middle], [], {}))

    def frozen() -> str | None:
        return view(row_of(engine), 0).frozen

    told(engine, S, Proposed(1, declared()))
    told(engine, S, Written(1, 7))
    assert frozen() == "frozen by user:eve: board swap"
    told(engine, 2 * S, Proposed(2, (Undeclare(FREEZE),)))
    told(engine, 2 * S, Written(2, 8))
    assert frozen() is None


def needs(engine: Engine) -> str | None:
    return unblock(row_of(engine))


def outcomes(engine: Engine) -> list[str]:
    return [one.outcome for one in row_of(engine).attempts.tried]


def test_what_is_frozen_is_looked_at_and_left_as_it_is() -> None:
    engine = engine_with(freeze())

    assert told(engine, S, CLOCKED, Ready("bmc")) == [
        Start("bmc"),
        call(1, Work.LOOK, "look", 2 * S),
    ]
    assert told(engine, 2 * S, Answered(1, "off", 2 * S)) == []
    assert standing(engine) == (Condition.WAITING, WHY)
    assert needs(engine) == "the end of the freeze, or haptera thaw SELECTOR"
    assert told(engine, 12 * S, Ticked()) == [call(2, Work.LOOK, "look", 13 * S)]


def test_what_is_as_desired_does_not_wait_for_its_freeze_to_end() -> None:
    engine = engine_with(freeze())
    told(engine, S, CLOCKED, Ready("bmc"), Answered(1, "on", S))
    told(engine, S, Answered(1, "on", S))

    assert standing(engine) == (Condition.CONVERGED, None)


@pytest.mark.parametrize(
    ("of", "holds"),
    [
        *(("*", True), ("node:n*", True), ("n[00-09]", True), ("n02", False), ("service:*", False)),
        *(("@platform:test", True), ("platform!=test", False), ("@gpu", False)),
        *(("* and not n01", False), ("not service:*", True)),
        # Written by a parent of another version: what goes by state holds nothing.
        *(("power=off", False), ("power=off or n[01", False)),
    ],
)
def test_a_freeze_holds_what_its_selector_names(of: str, holds: bool) -> None:
    engine = engine_with(freeze(of))
    told(engine, S, CLOCKED, Ready("bmc"))
    told(engine, S, Answered(1, "off", S))

    assert (standing(engine) == (Condition.WAITING, WHY)) is holds


def conditions(engine: Engine, now: int) -> set[Condition]:
    """How the nodes stand once there is nothing more to be done at once."""
    while (due := engine.deadline()) is not None and due <= now:
        told(engine, now, Ticked())
    return {row.stance.condition for row in engine.table if row.id.kind == "node"}


def test_what_a_freeze_of_very_many_is_of_is_decided_on_over_many_turns() -> None:
    wanted = {"power": Desired("on", "site")}
    names = [f"n{number}" for number in range(ASKED_MAX + 1)]
    nodes = [StoredEntity(node_id(name), ATTRIBUTES, "site", wanted, 3) for name in names]
    engine = parent(Stored(7, 4, [*nodes, freeze("node:*")], [], {}))
    calls = [one for one in told(engine, 98 * S, CLOCKED, Ready("bmc")) if isinstance(one, Call)]
    while len(calls) < len(nodes):
        calls += [one for one in told(engine, 98 * S, Ticked()) if isinstance(one, Call)]
    told(engine, 99 * S, *(Answered(one.id, "off", 99 * S) for one in calls))
    assert conditions(engine, 99 * S) == {Condition.WAITING}

    assert told(engine, 100 * S, Ticked())[0] == Write(1, (Undeclare(FREEZE),), 4)
    assert engine.rounds.decisions.backlog.waits
    assert conditions(engine, 100 * S) == {Condition.ACTING}


@pytest.mark.parametrize(("of", "decided"), [("n[7-9]", 3), ("node:*", None), ("*", None)])
def test_whom_a_rule_selects_is_asked_of_few(of: str, decided: int | None) -> None:
    table = EntityTable(KINDS)
    for number in range(ASKED_MAX + 1):
        table.apply(Declare(node_id(f"n{number}"), {}, "site"), 1)
    found = Rules(table, "freeze").few([NOTHING, parse_selector(of)])
    assert (None if found is None else len(found)) == decided


WEB = EntityId("service", "web", "n01")
RUN = Look("runner", "look", "service", "run", ("stopped", "running"), context=PARENT)
RUNNER = Manifest(
    "runner",
    "1",
    PARENT,
    (RUN,),
    (
        Step(
            "runner", "start", "service", (Brings("run", ("stopped",), "running"),), context=PARENT
        ),
    ),
)


def test_what_comes_into_a_group_is_frozen_with_it_and_so_is_what_is_on_it() -> None:
    node = StoredEntity(NODE, ATTRIBUTES, "site", {}, 3)
    web = StoredEntity(WEB, {}, "site", {"run": Desired("running", "site")}, 3)
    state = Stored(7, 4, [node, web, freeze("@held")], [], {})
    engine = Engine(SIDE, Catalog(KINDS, [BMC, RUNNER]), state, 0, S)
    row = row_of(engine, WEB)

    joined = (Declare(NODE, ATTRIBUTES | {"groups": "gpu, held"}, "site"),)
    told(engine, S, CLOCKED, Ready("runner"), Proposed(9, joined))
    told(engine, S, Written(1, 7))
    told(engine, S, Answered(looked_at_under(row), "stopped", S))
    assert (row.stance.condition, row.stance.why) == (Condition.WAITING, WHY)

    told(engine, 2 * S, Proposed(10, (Declare(NODE, ATTRIBUTES, "site"),)))
    told(engine, 2 * S, Written(2, 8))
    assert row.stance.condition is Condition.ACTING


def looked_at_under(row: EntityState) -> int:
    """The number of the call for its only look."""
    (looking,) = row.work.looks.values()
    assert looking.call is not None
    return looking.call


def test_an_intent_that_was_written_and_not_acted_on_is_closed_by_a_freeze() -> None:
    engine = engine_with()
    told(engine, S, Ready("bmc"))
    intent = Intent("a1-1", NODE, "bmc", "switch_on", S, "boot")
    assert told(engine, S, Answered(1, "off", S)) == [Write(1, (OpenIntent(intent),))]
    told(engine, S, Proposed(9, declared()))

    # The freeze is durable first, then the intent: it is not begun any more.
    assert told(engine, 2 * S, Written(2, 7), Written(1, 8)) == [
        Reply(9, 7),
        Write(3, (CloseIntent("a1-1", begun=False),)),
    ]
    assert outcomes(engine) == ["not started: frozen"]
    assert standing(engine) == (Condition.WAITING, "frozen by user:eve: board swap")


def test_a_step_that_was_begun_is_read_to_its_end_and_the_next_one_is_not_begun() -> None:
    engine = looked("off", engine_with())
    assert told(engine, S, Written(1, 5)) == [call(2, Work.STEP, "switch_on", 3 * S, "a1-1")]
    told(engine, S, Proposed(9, declared()))
    assert told(engine, 2 * S, Written(2, 8)) == [Reply(9, 8)]
    assert standing(engine) == (Condition.ACTING, "bmc.switch_on: runs")

    assert told(engine, 2 * S, Ended(2)) == [call(3, Work.LOOK, "look", 3 * S)]
    told(engine, 3 * S, Answered(3, "off", 3 * S))
    assert told(engine, 5 * S, Ticked()) == [call(4, Work.LOOK, "look", 6 * S)]
    # It came to nothing: that is read as ever, and the step is not tried again.
    assert told(engine, 5 * S, Answered(4, "off", 5 * S)) == [Write(3, (CloseIntent("a1-1"),))]
    assert outcomes(engine) == ["returned, but power is off"]
    told(engine, 20 * S, Ticked())
    assert standing(engine) == (Condition.WAITING, "frozen by user:eve: board swap")


def test_what_an_earlier_process_left_under_way_is_read_though_it_is_frozen() -> None:
    left = Intent("99-1", NODE, "bmc", "switch_on", S, "boot")
    engine = engine_with(freeze(), intents=(left,))
    told(engine, 2 * S, CLOCKED, Ready("bmc"))

    assert told(engine, 3 * S, Answered(1, "on", 3 * S)) == [Write(1, (CloseIntent("99-1"),))]
    assert standing(engine) == (Condition.CONVERGED, None)


def test_a_freeze_ends_at_its_time_and_is_forgotten_durably() -> None:
    engine = engine_with(freeze())
    told(engine, S, CLOCKED, Ready("bmc"))
    told(engine, 99 * S, Answered(1, "off", 99 * S))
    assert standing(engine) == (Condition.WAITING, WHY)
    assert engine.deadline() == 100 * S

    closing, opening = told(engine, 100 * S, Ticked())
    assert closing == Write(1, (Undeclare(FREEZE),), 4)
    assert isinstance(opening, Write)
    assert told(engine, 100 * S + MS, Written(1, 5)) == []
    assert engine.table.get(FREEZE) is None


def test_a_freeze_that_could_not_be_forgotten_holds_nothing_and_is_seen_to_again() -> None:
    engine = engine_with(freeze(of="n02"))
    told(engine, 200 * S, CLOCKED)
    assert engine.deadline() == 100 * S
    assert told(engine, 200 * S, Ticked()) == [Write(1, (Undeclare(FREEZE),), 4)]
    assert told(engine, 200 * S, Unwritten(1, "disk is full")) == []

    again = told(engine, 200 * S + BACKOFF_NS, Ticked())
    assert again == [Write(2, (Undeclare(FREEZE),), 4)]


def test_a_freeze_that_is_prolonged_while_it_ends_goes_on() -> None:
    engine = engine_with(freeze())
    told(engine, S, CLOCKED, Ready("bmc"))
    told(engine, 99 * S, Answered(1, "off", 99 * S))
    told(engine, 99 * S, Proposed(9, (UnsetDesired(FREEZE, "until_s"),)))
    # The store has the later end already, so what was made for the earlier one is refused.
    thawing, opening = told(engine, 100 * S, Ticked())
    assert thawing == Write(2, (Undeclare(FREEZE),), 4)
    assert isinstance(opening, Write)
    told(engine, 100 * S, Written(1, 5), Unwritten(2, "changed since", Cause.STALE))

    assert told(engine, 101 * S, Written(3, 6)) == [Write(4, (CloseIntent("a1-1", begun=False),))]
    assert outcomes(engine) == ["not started: frozen"]
    assert standing(engine) == (Condition.WAITING, "frozen by user:eve: board swap")
    assert engine.table.get(FREEZE) is not None


def test_no_freeze_ends_before_the_wall_clock_is_known_and_all_follow_it_where_it_is_set() -> None:
    engine = engine_with(freeze())
    told(engine, S, Ready("bmc"))
    told(engine, 500 * S, Answered(1, "off", 500 * S))
    assert standing(engine) == (Condition.WAITING, WHY)

    told(engine, 500 * S, WallClockSet(CLOCKED.wall_offset_ns - 450 * S))
    assert standing(engine) == (Condition.WAITING, WHY)
    told(engine, 501 * S, WallClockSet(CLOCKED.wall_offset_ns))
    assert standing(engine)[0] is not Condition.WAITING


def test_of_two_freezes_the_one_that_lasts_longer_is_told() -> None:
    other = freeze(until_s=None)
    other.entity = EntityId("freeze", "f0", None)
    engine = engine_with(freeze(), other)
    told(engine, S, CLOCKED, Ready("bmc"))
    told(engine, S, Answered(1, "off", S))

    assert standing(engine) == (Condition.WAITING, "frozen by user:eve: board swap")


def test_the_modules_of_what_is_frozen_go_on_for_it_is_they_who_look() -> None:
    engine = engine_with(freeze("*", until_s=None))

    assert engine.hands.freezes.why(NODE, S) is not None
    assert engine.hands.freezes.why(EntityId("module", "bmc", None), S) is None


def test_what_is_as_desired_says_that_it_is_frozen_for_as_long_as_it_is() -> None:
    engine = engine_with(freeze())
    engine.handle([CLOCKED, Ready("bmc")], 2 * S)
    row = row_of(engine)
    assert view(row, 2 * S).frozen == WHY
    engine.handle([Ticked()], 101 * S)
    assert view(row, 101 * S).frozen is None
