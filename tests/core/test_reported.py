"""Readings that others report: a memory where a look can tell, and else what is known."""

from collections.abc import Sequence

import pytest

from haptera.core.act.contradiction import contested
from haptera.core.act.reported import NEWER_NS
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.kinds.node import JOBS_NONE, jobs
from haptera.model.answers.views import Condition, ObservedView, ReadingView
from haptera.model.changes import Declare, Stored, StoredEntity
from haptera.model.effects import Call, Write
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.model.events import (
    Answered,
    Ended,
    Event,
    Failed,
    Proposed,
    ReadingReported,
    Ready,
    Ticked,
    Written,
)
from haptera.model.facts import REPORTED_MS_MAX, Method
from tests.core.scenario import (
    ATTRIBUTES,
    BMC,
    LOOK,
    NODE,
    SIDE,
    begun,
    looked,
    parent,
    row_of,
    standing,
    stored,
    told,
)
from tests.core.test_contradiction import answer, two_modules

NEWS = 3 * S
LASTS = REPORTED_MS_MAX * MS


def reported(variable: str, value: str, at: int, by: str = "report:rack") -> ReadingReported:
    return ReadingReported(NODE, variable, value, by, at)


def looks(effects: Sequence[object]) -> list[str]:
    return [one.part for one in effects if isinstance(one, Call)]


def test_what_no_look_tells_is_known_by_a_report_with_its_source_and_age() -> None:
    engine = parent(stored(desired={}))
    told(engine, NEWS, reported("busy", "busy", 2 * S))
    assert view(row_of(engine), 4 * S).observed == {
        "busy": ObservedView("busy", True, "reported", "report:rack", 2_000)
    }


def test_an_older_report_changes_nothing_and_a_later_one_replaces_whoever_reports() -> None:
    engine = parent(stored(desired={}))
    told(engine, NEWS, reported("busy", "busy", 2 * S), reported("busy", "free", S, "report:other"))
    assert row_of(engine).belief.known["busy"].value == "busy"
    told(engine, NEWS, reported("busy", "free", NEWS, "report:other"))
    fact = row_of(engine).belief.known["busy"]
    assert (fact.value, fact.by) == ("free", "report:other")


def test_a_report_is_remembered_only_once_it_is_too_old() -> None:
    engine = parent(stored(desired={}))
    told(engine, NEWS, reported("busy", "busy", 2 * S))
    told(engine, 2 * S + LASTS - 1, Ticked())
    assert sorted(row_of(engine).belief.known) == ["busy"]
    assert (engine.deadline() or 0) <= 2 * S + LASTS
    told(engine, 2 * S + LASTS, Ticked())
    belief = row_of(engine).belief
    assert (sorted(belief.known), sorted(belief.remembered)) == ([], ["busy"])


def test_a_report_of_what_a_look_can_tell_is_a_memory_and_has_the_look_taken() -> None:
    """No step begins by it, though what it says is what the step starts from."""
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    told(engine, 2 * S, Failed(1, "no route"))
    effects = told(engine, NEWS, reported("power", "off", NEWS))
    belief = row_of(engine).belief
    assert (sorted(belief.known), belief.remembered["power"].method) == ([], Method.REPORTED)
    assert not any(isinstance(one, Write) for one in effects)

    told(engine, NEWS, reported("power", "on", NEWS - 1))
    assert belief.remembered["power"].value == "off"  # what was read later


def test_a_report_against_a_look_is_contested_until_the_look_is_taken_again() -> None:
    engine = looked("on", power="on")
    assert standing(engine) == (Condition.CONVERGED, None)

    effects = told(engine, NEWS, reported("power", "off", 2 * S))
    assert looks(effects) == ["look"]
    assert (
        contested(row_of(engine)) == "contested: report:rack says power off, bmc.look says power on"
    )
    assert view(row_of(engine), NEWS).observed["power"] == ObservedView(
        "on", True, "read", "bmc", 2_000, ReadingView("power", "off", "report:rack", 1_000)
    )

    (again,) = [one for one in effects if isinstance(one, Call)]
    told(engine, 4 * S, Answered(again.id, "on", 4 * S))
    row = row_of(engine)
    assert (standing(engine), row.belief.second, row.at_rest) == (
        (Condition.CONVERGED, None),
        {},
        True,
    )


def test_a_look_that_finds_what_was_reported_is_what_is_known_then() -> None:
    engine = looked("on", power="on")
    (again,) = [
        one for one in told(engine, NEWS, reported("power", "off", 2 * S)) if isinstance(one, Call)
    ]
    told(engine, 4 * S, Answered(again.id, "off", 4 * S))
    fact = row_of(engine).belief.known["power"]
    assert (fact.value, fact.by, fact.method) == ("off", "bmc", Method.READ)
    assert contested(row_of(engine)) is None


def test_a_report_that_is_older_than_the_look_or_says_the_same_contests_nothing() -> None:
    engine = looked("on", power="on")
    told(engine, NEWS, reported("power", "off", S - 1), reported("power", "on", 2 * S))
    assert (contested(row_of(engine)), standing(engine)) == (None, (Condition.CONVERGED, None))


def test_a_report_does_not_settle_what_two_modules_contest() -> None:
    """Though it says what one of them does; whoever reports could else have a step begin."""
    engine = two_modules()
    answer(engine, 12 * S, {"bmc": "on", "pdu": "off"})
    why = contested(row_of(engine))
    assert why is not None
    for value in ("off", "on"):
        effects = told(engine, 13 * S + 10 * MS, reported("power", value, 13 * S + 10 * MS))
        assert not [one for one in effects if isinstance(one, Write)]
        assert contested(row_of(engine)) == why


@pytest.mark.parametrize("values", [("off", "off"), ("off", "on")])
def test_who_reports_without_end_neither_holds_up_steps_nor_wears_out_a_device(
    values: tuple[str, str],
) -> None:
    engine, asked = looked("on", power="on"), list[Call]()
    every, takes, until = 10 * MS, 100 * MS, 20 * S
    contests = list[int]()
    for now in range(2 * S, until, every):
        events: list[Event] = [reported("power", values[now // every % 2], now)]
        if asked and now == asked[-1].deadline_at - LOOK.within_ms * MS + takes:
            events.append(Answered(asked[-1].id, "on", now - takes))
        asked += [one for one in told(engine, now, *events) if isinstance(one, Call)]
        contests += [now] if contested(row_of(engine)) else []
    assert 15 <= len(asked) <= (until - 2 * S) // NEWER_NS
    assert len(contests) * every < (until - 2 * S) // 4


def test_a_report_of_before_the_machine_was_booted_counts() -> None:
    engine = parent(stored(desired={}))
    told(engine, 2 * S, reported("busy", "busy", -5 * S))
    assert row_of(engine).belief.known["busy"].at == -5 * S


def test_a_report_is_no_look_after_a_step() -> None:
    """The step has returned; what it came to is read by the look that follows, and by it alone."""
    engine = begun()
    (look,) = [one for one in told(engine, 2 * S, Ended(2)) if isinstance(one, Call)]
    told(engine, NEWS, reported("power", "on", NEWS))
    row = row_of(engine)
    assert row.work.stepping is not None
    assert "power" not in row.belief.known
    told(engine, 4 * S, Answered(look.id, "on", 4 * S))
    told(engine, 4 * S, Written(2, 5))
    assert row_of(engine).work.stepping is None
    assert standing(engine)[0] is Condition.CONVERGED


@pytest.mark.parametrize(
    ("variable", "value", "wrong"),
    [
        ("agent", "up", "node.agent is observed by haptera itself"),
        ("work", "takes-jobs", "node.work"),
        ("pwoer", "on", "a node has no variable 'pwoer'"),
        ("power", "of", "node.power cannot be"),
        ("power", "unknown", "unknown cannot be read of power"),
    ],
)
def test_what_cannot_be_read_by_others_is_refused(variable: str, value: str, wrong: str) -> None:
    engine = parent(stored(desired={}))
    with pytest.raises(HapteraError, match=wrong):
        engine.answers.reported.check(reported(variable, value, S))
    engine.answers.reported.check(reported("busy", "free", S))


def test_a_report_of_what_is_gone_since_is_dropped() -> None:
    engine = looked("on")
    gone = ReadingReported(node_id("n09"), "busy", "busy", "report:rack", S)
    assert told(engine, S, gone) == []
    assert row_of(engine).belief.known.keys() == {"power"}


def test_a_node_without_jobs_is_free_whatever_was_reported_before_that_was_declared() -> None:
    engine = parent(stored(desired={}))
    told(engine, S, reported("busy", "busy", S))
    attributes = ATTRIBUTES | {jobs.name: JOBS_NONE}
    told(engine, 2 * S, Proposed(9, (Declare(NODE, attributes, "site"),)))
    told(engine, 2 * S, Written(1, 4))
    for now in (2 * S, 3 * S):
        told(engine, now, reported("busy", "busy", now))
        fact = row_of(engine).belief.known["busy"]
        assert (fact.value, fact.method) == ("free", Method.READ)


def test_what_is_reported_of_a_node_is_borrowed_by_what_is_on_it() -> None:
    """Of a variable without a look, a report is as good as a reading to those who plan with it."""
    entity = StoredEntity(NODE, {}, "site", {}, 1)
    engine = Engine(SIDE, Catalog(KINDS, [BMC]), Stored(7, 1, [entity], [], {}), 0, S)
    told(engine, S, reported("busy", "busy", S))
    row = row_of(engine)
    domain = engine.catalog.domain(row, row)
    observed, remembered = row.seen({})
    assert domain.known(domain.start(observed, remembered)) == {"busy": "busy"}
