"""Readings that cannot both be so: shown, looked at again, and nothing done on them."""

from itertools import pairwise

import pytest

from haptera.core.act.contradiction import NEWER_NS, SOON_MAX, SOON_NS, contested
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.side import Side
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition, ObservedView, ReadingView
from haptera.model.changes import Desired, OpenIntent, Stored, StoredEntity
from haptera.model.effects import Call, Effect, Publish, Tell, Work, Write
from haptera.model.entity import node_id
from haptera.model.events import (
    Alive,
    Answered,
    Enrolled,
    Event,
    Exited,
    Heard,
    Ready,
    Ticked,
    WatchReported,
    Written,
)
from haptera.model.messages import Mark, Message
from haptera.model.parts import Change, Context, Look, Manifest, Step
from haptera.modules import load
from tests.core.scenario import row_of, standing

NODE = node_id("n01")
SIDE = Side(Context.PARENT, None, 0xA1, "boot", 5 * S)
WHY = "contested: sync.hear says agent up, labnode.look_power says power off"
HELLO = Heard("n01", 77, Message(1, 0, 0, Mark(), Mark()), S)


def parent(**desired: str) -> Engine:
    """A parent of one node, that is on and whose agent was heard at 1 s; call 1 is the watch."""
    values = {name: Desired(value, "site") for name, value in desired.items()}
    entity = StoredEntity(NODE, {"platform": "labnode"}, "site", values, 1)
    catalog = Catalog(KINDS, [load("labnode").manifest()])
    engine = Engine(SIDE, catalog, Stored(7, 1, [entity], [], {}), 0, S)
    engine.handle([Ready("labnode"), Enrolled("n01", 1), HELLO], S)
    engine.handle([Answered(2, "on", S)], S)
    assert sorted(row_of(engine).belief.known) == ["agent", "power"]
    return engine


def done(effects: list[Effect]) -> list[object]:
    """What was asked of the module and of the node, and whether a step was meant."""
    return [
        effect.part if isinstance(effect, Call) else "probe" if isinstance(effect, Tell) else effect
        for effect in effects
        if isinstance(effect, Call | Write) or (isinstance(effect, Tell) and effect.message.probe)
    ]


def live(
    engine: Engine, now: int, end: int, *events: Event, hellos: range = range(0)
) -> list[tuple[int, object]]:
    """Let time pass, with hellos at these times; looks find `off`, and what is meant is written."""
    every: list[tuple[int, object]] = []
    batch = [*events, Ticked()]
    while now <= end:
        if now in hellos:
            batch.append(Alive(("n01",), now))
        effects = engine.handle(batch, now)
        every += [(now, one) for one in done(effects)]
        batch = [
            Answered(one.id, "off", now) if isinstance(one, Call) else Written(one.ticket, 2)
            for one in effects
            if isinstance(one, Write) or (isinstance(one, Call) and one.work is Work.LOOK)
        ]
        due = engine.deadline()
        hello_at = next((at for at in hellos if at > now), end + 1)
        now = now + MS if batch else min(hello_at, end + 1 if due is None else max(due, now + 1))
    return every


def test_an_agent_that_answers_where_power_reads_off_is_contested_and_both_are_asked_again() -> (
    None
):
    engine = parent(power="off")
    engine.handle([WatchReported(1, "off", 2 * S)], 2 * S)
    assert row_of(engine).stance.condition is Condition.CONVERGED

    effects = engine.handle([Alive(("n01",), 4 * S)], 4 * S)
    row = row_of(engine)
    assert done(effects) == ["look_power", "probe"]
    assert (row.stance.condition, row.stance.why, contested(row)) == (Condition.ACTING, WHY, WHY)
    assert view(row, 5 * S).observed == {
        "power": ObservedView(
            "off", True, "read", "labnode", 3_000, ReadingView("agent", "up", "sync.hear", 1_000)
        ),
        "agent": ObservedView(
            "up",
            False,
            "read",
            "sync",
            1_000,
            ReadingView("power", "off", "labnode.look_power", 3_000),
        ),
    }


def test_a_hello_that_was_under_way_when_power_was_cut_is_not_contested() -> None:
    engine = parent(power="off")
    engine.handle([WatchReported(1, "off", 2 * S)], 2 * S)
    engine.handle([Alive(("n01",), 2 * S + NEWER_NS)], 2 * S + NEWER_NS)

    assert (row_of(engine).stance.condition, contested(row_of(engine))) == (
        Condition.CONVERGED,
        None,
    )


def test_power_that_is_read_off_over_and_over_does_not_outrun_the_agents_word() -> None:
    engine = parent(power="off")
    engine.handle([WatchReported(1, "off", 2 * S)], 2 * S)
    for tenth in range(21, 60):
        engine.handle([WatchReported(1, "off", tenth * S // 10)], tenth * S // 10)
    engine.handle([Alive(("n01",), 6 * S)], 6 * S)

    assert row_of(engine).stance.why == WHY


def test_a_contest_ends_when_power_reads_on() -> None:
    engine = parent(power="on", agent="up")
    (meant,) = done(engine.handle([WatchReported(1, "off", 2 * S)], 2 * S))
    assert isinstance(meant, Write)
    engine.handle([Alive(("n01",), 4 * S), Written(meant.ticket, 2)], 4 * S)
    assert contested(row_of(engine)) == WHY
    engine.handle([WatchReported(1, "on", 5 * S)], 5 * S)

    row = row_of(engine)
    assert (row.stance.condition, sorted(row.belief.known)) == (
        Condition.CONVERGED,
        ["agent", "power"],
    )


def test_a_contest_ends_when_power_was_read_off_again_and_the_agent_falls_silent() -> None:
    engine = parent(power="off")
    live(engine, 2 * S, 9 * S, WatchReported(1, "off", 2 * S), hellos=range(4 * S, 5 * S, S))
    # As long as a hello may yet be on its way: 1.2 H after the last.
    assert contested(row_of(engine)) == WHY
    live(engine, 9 * S, 10 * S)
    assert (row_of(engine).stance.condition, contested(row_of(engine))) == (
        Condition.CONVERGED,
        None,
    )


def test_an_agent_that_fell_silent_is_contested_until_power_was_looked_at_again() -> None:
    engine = parent(power="off")
    engine.handle([WatchReported(1, "off", 3 * S - MS)], 3 * S - MS)
    engine.handle([Alive(("n01",), 4 * S), Exited("labnode", "was killed", 1)], 4 * S)
    for now in range(4 * S, 10 * S + MS, 200 * MS):
        engine.handle([Ticked()], now)
    assert contested(row_of(engine)) == WHY

    engine.handle([Ready("labnode", 2, "1")], 10 * S + 2 * MS)
    live(engine, 10 * S + 2 * MS, 11 * S)
    assert contested(row_of(engine)) is None


def test_no_step_is_begun_on_what_is_contested_and_one_that_was_only_meant_is_closed() -> None:
    engine = parent(power="on", agent="up")
    (meant,) = done(engine.handle([WatchReported(1, "off", 2 * S)], 2 * S))
    assert isinstance(meant, Write)
    engine.handle([Alive(("n01",), 3 * S + MS)], 3 * S + MS)

    effects = engine.handle([Written(meant.ticket, 2)], 3 * S + 2 * MS)
    assert not [one for one in effects if isinstance(one, Call) and one.work is Work.STEP]
    assert [one.outcome for one in row_of(engine).attempts.tried] == [f"not started: {WHY}"]
    assert row_of(engine).stance.condition is Condition.ACTING


def test_both_are_looked_at_a_few_times_and_then_ever_more_rarely() -> None:
    engine = parent(power="off")
    hellos = range(2 * S, 300 * S, S // 2)
    meant = live(engine, 2 * S, 300 * S, WatchReported(1, "off", 2 * S), hellos=hellos)
    # Before, it was asked for its permit.
    probes = [now for now, one in meant if one == "probe" and now > 2 * S]
    gaps = [late - early for early, late in pairwise(probes)]

    assert gaps[:SOON_MAX] == [SOON_NS] * SOON_MAX
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 60 * S
    assert standing(engine) == (Condition.STUCK, WHY)


def two_modules() -> Engine:
    """Two modules that look at one variable; calls 1 and 2 are theirs, in the order of names."""
    looks = [
        Look(name, "look", "node", "power", ("off", "on"), context=Context.PARENT)
        for name in ("bmc", "pdu")
    ]
    step = Step("bmc", "on", "node", (Change("power", ("off",), "on"),), context=Context.PARENT)
    modules = [
        Manifest("bmc", "1", Context.PARENT, (looks[0],), (step,)),
        Manifest("pdu", "1", Context.PARENT, (looks[1],), ()),
    ]
    entity = StoredEntity(NODE, {}, "site", {"power": Desired("on", "site")}, 1)
    state = Stored(7, 1, [entity], [], {})
    engine = Engine(SIDE, Catalog(KINDS, modules), state, 0, S)
    engine.handle([Ready("bmc"), Ready("pdu")], S)
    engine.handle([Answered(1, "on", S), Answered(2, "on", S + MS)], S + MS)
    return engine


def answer(engine: Engine, now: int, readings: dict[str, str]) -> list[Effect]:
    """Whatever is asked is answered so, until nothing is asked any more."""
    every: list[Effect] = []
    events: list[Answered | Ticked] = [Ticked()]
    while events:
        effects = [one for one in engine.handle(events, now) if not isinstance(one, Publish)]
        every += effects
        calls = [one for one in effects if isinstance(one, Call)]
        now += MS
        events = [Answered(one.id, readings[one.module], now) for one in calls]
    return every


def test_two_modules_that_differ_on_one_variable_are_both_asked_again() -> None:
    engine = two_modules()
    assert row_of(engine).stance.condition is Condition.CONVERGED

    effects = answer(engine, 12 * S, {"bmc": "on", "pdu": "off"})
    row = row_of(engine)
    assert not [one for one in effects if isinstance(one, Write)]
    assert row.stance.why == "contested: bmc.look says power on, pdu.look says power off"
    shown = view(row, 13 * S).observed["power"]
    assert (shown.value, shown.by, shown.contested and shown.contested.value) == (
        "off", "pdu", "on",
    )  # fmt: skip


@pytest.mark.parametrize("value", ["on", "off"])
def test_two_modules_that_come_to_agree_are_no_contest(value: str) -> None:
    engine = two_modules()
    answer(engine, 12 * S, {"bmc": "on", "pdu": "off"})
    effects = answer(engine, 14 * S, {"bmc": value, "pdu": value})

    assert (contested(row_of(engine)), row_of(engine).belief.known["power"].value) == (None, value)
    meant = [one for one in effects if isinstance(one, Write)]
    assert [type(one.changes[0]) for one in meant] == ([OpenIntent] if value == "off" else [])


def test_what_only_one_module_can_still_look_at_is_its_alone_in_the_end() -> None:
    engine = two_modules()
    answer(engine, 12 * S, {"bmc": "on", "pdu": "off"})
    engine.handle([], 13 * S)
    row = row_of(engine)
    row.work.looks["bmc.look"].failed_until = 1_000 * S  # a look that hangs tells nothing new
    row.work.looks["bmc.look"].due_at = 1_000 * S
    now = 14 * S
    while now < 60 * S:
        answer(engine, now, {"bmc": "on", "pdu": "off"})
        now += S

    assert contested(row) is None
