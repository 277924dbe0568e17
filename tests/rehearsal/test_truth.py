"""A roll's record beside its rehearsal: figures and order, on records written by hand."""

import msgspec

from haptera.controllers.roll.timeline import RollLane, RollPhase, RollSpan, RollTimeline
from haptera.model.answers.past import Changed, PastView
from haptera.model.changes import Change, Declare, SetDesired, Undeclare, UnsetDesired
from haptera.model.entity import EntityId, node_id
from haptera.rehearsal.present import present_of_past
from haptera.rehearsal.rehearse import Rehearsal, RehearsalRun, Span, rehearse
from haptera.rehearsal.summary import Spread
from haptera.rehearsal.truth import ComparedFigure, compared_roll, written
from tests.rehearsal.test_rolls import NODES, WALL_S, compute, the_present, the_roll

N1, N2 = "system:compute@n1", "system:compute@n2"


def lane(system: str, *phases: tuple[RollPhase, float, float]) -> RollLane:
    return RollLane(system, [RollSpan(*one) for one in phases])


def record(*lanes: RollLane) -> RollTimeline:
    return RollTimeline("b", "debian-b", 1_000.0, 1_100.0, [*lanes], [])


def rolled(system: str, from_s: float, new_s: float) -> RollLane:
    return lane(
        system,
        (RollPhase.STAGING, 1_000.0, 1_000.0 + from_s),
        (RollPhase.CHANGING, 1_000.0 + from_s, 1_000.0 + new_s),
        (RollPhase.NEW, 1_000.0 + new_s, 1_100.0),
    )


def played(*flips: tuple[str, float, float], seed: int = 1, settled: bool = True) -> RehearsalRun:
    spans = [
        Span(system, system.partition("@")[2], "system.flip", from_s, to_s, True, False)
        for system, from_s, to_s in flips
    ]
    spans.append(Span(N1, "n1", "system.stage", 0.0, 1.0, False, False))
    spans.append(Span("service:web@n1", "n1", "service.stop", 0.0, 90.0, True, False))
    end = max(one.to_s for one in spans)
    stuck = {} if settled else {N2: "a job runs"}
    return RehearsalRun(seed, end if settled else None, spans, {}, stuck, {}, 0, [])


def test_figures_are_of_the_rolls_own_systems_and_of_what_is_disruptive() -> None:
    happened = record(rolled(N1, 5.0, 9.0), rolled(N2, 10.0, 16.0))
    runs = [played((N1, 4.0, 10.0), (N2, 10.0, 20.0)), played((N2, 4.0, 8.0), (N1, 6.0, 12.0))]
    told = compared_roll(happened, 7, runs, ["site-own"])
    assert told.figures == [
        ComparedFigure("done after", 16.0, Spread(12.0, 12.0, 20.0, 20.0), is_time=True),
        ComparedFigure("a system away for", 5.0, Spread(5.0, 5.0, 8.0, 8.0), is_time=True),
        ComparedFigure("away at once", 1, Spread(1, 1, 2, 2)),
        ComparedFigure("systems changed", 2, Spread(2, 2, 2, 2)),
    ]
    assert [one.off for one in told.figures] == [-0.25, 0.0, 0.0, 0.0]
    assert (told.same_order, told.runs, told.missing) == (0.5, 2, ["site-own"])


def test_what_did_not_come_to_an_end_has_no_figure() -> None:
    refused = lane(
        N2,
        (RollPhase.CHANGING, 1_010.0, 1_012.0),
        (RollPhase.REFUSED, 1_012.0, 1_014.0),
        (RollPhase.CHANGING, 1_014.0, 1_015.0),
        (RollPhase.BACK, 1_015.0, 1_100.0),
    )
    told = compared_roll(
        record(rolled(N1, 5.0, 9.0), refused), 7, [played((N1, 4.0, 9.0), settled=False)], []
    )
    done, away, *_ = told.figures
    assert (done.happened, done.rehearsed, done.off) == (None, None, None)
    assert (away.happened, told.same_order) == (4.5, None)


def test_what_was_halted_before_keeps_no_run_from_its_end() -> None:
    halted = {"roll:old": "halted"}
    run = msgspec.structs.replace(
        played((N1, 0.0, 2.0), settled=False), stuck=halted, restless=halted
    )
    [done, *_] = compared_roll(record(rolled(N1, 5.0, 9.0)), 7, [run], []).figures
    assert done.rehearsed == Spread(2.0, 2.0, 2.0, 2.0)


def test_one_that_was_undone_counts_until_it_was_done() -> None:
    undone = lane(
        N1,
        (RollPhase.CHANGING, 1_001.0, 1_003.0),
        (RollPhase.NEW, 1_003.0, 1_050.0),
        (RollPhase.CHANGING, 1_050.0, 1_060.0),
        (RollPhase.BACK, 1_060.0, 1_100.0),
    )
    done, away, *_ = compared_roll(record(undone), 7, [played((N1, 0.0, 2.0))], []).figures
    assert (done.happened, away.happened) == (3.0, 2.0)


def test_a_recorded_write_is_made_once_more_in_its_order() -> None:
    roll = "roll:b"
    rows = [
        Changed(7, 1.0, roll, None, None, '{"rack":"1"}', "user:eve", None),
        Changed(7, 1.0, roll, "image", None, "debian-b", "user:eve", None),
        Changed(7, 1.0, N1, "spare", "x", None, "user:eve", "site"),
        Changed(7, 1.0, "roll:old", None, "{}", None, "user:eve", "user:eve"),
    ]
    assert [*written(reversed(rows))] == [
        Declare(EntityId("roll", "b", None), {"rack": "1"}, "user:eve"),
        SetDesired(EntityId("roll", "b", None), "image", "debian-b", "user:eve"),
        UnsetDesired(EntityId("system", "compute", "n1"), "spare"),
        Undeclare(EntityId("roll", "old", None)),
    ]


def unchanged(one: Change) -> bool:
    return isinstance(one, SetDesired) and (one.entity.kind, one.name) == ("system", "image")


def test_the_past_is_rehearsed_as_the_present_was() -> None:
    """The same roll from the state as the history has it: the same run."""
    before = the_present()
    then = [
        PastView(
            str(one.entity),
            one.attributes,
            {name: held.value for name, held in one.desired.items()},
            {name: f"{value}?" for name, value in before.values[one.entity].items()},
        )
        for one in before.entities
    ]
    then.append(PastView("module:labnode", {}, {}, {}))
    modules = ("labnode", "jobs", "system", "roll", "of-a-site")
    past = present_of_past(then, 1, WALL_S, "user:eve", modules)
    # The record has no change of an image that was desired by the roll's owner before.
    recorded = [one for one in the_roll() if not unchanged(one)]
    scripts = [Rehearsal(one) for one in (the_roll(), recorded)]
    played = [rehearse(*one, seed=3) for one in zip((before, past), scripts, strict=True)]
    flipped = [
        {one.node for one in run.spans if one.part == "system.flip" and not one.failed}
        for run in played
    ]
    assert flipped == [{*NODES}, {*NODES}]
    assert (past.missing, past.values[compute("n1")]) == (
        ("of-a-site",),
        {"run": "running", "applied": "current", "staged": "current"},
    )
    assert past.values[node_id("n1")] == before.values[node_id("n1")]
