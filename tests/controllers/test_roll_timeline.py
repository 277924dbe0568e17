"""The course of a roll, told from what the record has of it."""

import pytest

from haptera.controllers.roll.timeline import (
    RollBegun,
    RollLane,
    RollMark,
    RollPhase,
    RollSpan,
    RollTimeline,
    begun,
    timeline,
)
from haptera.model.answers.past import Changed, Happened, PastView, Sort
from haptera.model.errors import HapteraError

N1, N2 = "system:compute@n1", "system:compute@n2"
START = RollBegun("b", "b", 100.5, (N1,), 7)
RUNS = {"run": "running", "applied": "current", "staged": "current", "refused": "stale"}
JOB = "jobs: 1 job runs: sleep 30"
STAGING, READY, WAITING, CHANGING, NEW, REFUSED, BACK, SILENT = RollPhase


def changed(at_s, entity, name, after, before=None, revision=1):
    return Changed(revision, at_s, entity, name, before, after, "user:ada", None)


def seen(at_s, name, value, entity=N1):
    return Happened(at_s, entity, Sort.SEEN, name, value, "system")


def stands(at_s, condition, why=None, entity=N1):
    return Happened(at_s, entity, Sort.STANDS, None, condition, why)


def told(changes, happened, start=START, now_s=200.0):
    """The course of a roll of what ran image a, with what is told of it in order of time."""
    known = [PastView(one, {}, {"image": "a"}, RUNS, "converged") for one in start.systems]
    some = [ORDERED, *changes][::-1], happened[::-1]
    return timeline(start, known, *some, known_s=int(start.at_s), now_s=now_s)


def spans(changes, happened, now_s=200.0):
    (lane,) = told(changes, happened, now_s=now_s).lanes
    return [(one.phase, one.from_s, one.to_s, one.why) for one in lane.spans]


ORDERED = changed(100.5, N1, "spare", "b")
STAGED = [
    seen(101.0, "staged", "stale"),
    stands(101.0, "acting", "system.stage: runs"),
    seen(104.0, "staged", "current"),
    stands(104.0, "converged"),
]
TAKEN = [changed(106.0, N1, "image", "b", "a"), changed(106.0, N1, "spare", "a", "b")]
FLIPPED = [
    seen(106.25, "applied", "stale"),
    stands(106.25, "waiting", "n1 is asked for its permit"),
    stands(106.5, "waiting", JOB),
    stands(130.0, "acting", "system.flip: runs"),
    seen(131.0, "applied", "current"),
    stands(131.0, "converged"),
]
DONE = changed(132.0, "roll:b", "finished", 132)


def test_a_system_is_staged_waits_for_a_job_is_changed_and_is_new():
    assert told([*TAKEN, DONE], [*STAGED, *FLIPPED], now_s=9_000.0) == RollTimeline(
        "b",
        "b",
        100.5,
        132.0 + 31.5 / 8,
        [
            RollLane(
                N1,
                [
                    RollSpan(STAGING, 100.5, 104.0, "system.stage: runs"),
                    RollSpan(READY, 104.0, 106.0, None),
                    RollSpan(WAITING, 106.0, 130.0, JOB),
                    RollSpan(CHANGING, 130.0, 131.0, "system.flip: runs"),
                    RollSpan(NEW, 131.0, 132.0 + 31.5 / 8, None),
                ],
            )
        ],
        [RollMark(132.0, "done")],
    )


def test_one_that_goes_on_is_told_until_now():
    assert spans(TAKEN, [*STAGED, *FLIPPED[:3]])[-1] == (WAITING, 106.0, 200.0, JOB)


def test_an_image_that_is_refused_is_told_with_its_reason_and_so_is_the_way_back():
    halted = changed(112.0, "roll:b", "halted", "no configuration")
    back = [changed(112.0, N1, "image", "a", "b"), halted, changed(150.0, "roll:b", "wish", "run")]
    refused = [
        stands(107.0, "acting", "system.flip: runs"),
        seen(110.0, "refused", "current"),
        stands(110.0, "stuck", "no configuration"),
        seen(112.5, "applied", "current"),
        seen(112.5, "refused", "stale"),
        stands(112.5, "converged"),
    ]
    course = told([*TAKEN, *back], [*STAGED, *refused])
    assert [(one.phase, one.from_s, one.why) for one in course.lanes[0].spans[2:]] == [
        (WAITING, 106.0, None),
        (CHANGING, 107.0, "system.flip: runs"),
        (REFUSED, 110.0, "no configuration"),
        (WAITING, 112.0, "no configuration"),
        (BACK, 112.5, None),
    ]
    assert course.marks == [RollMark(112.0, "halted: no configuration")]
    # Nothing goes on since 112.5: it is told a little further, and the rest is left out.
    assert course.to_s == 112.5 + 12.0 / 8


def test_a_parent_that_starts_knows_nothing_until_it_hears():
    begins = [Happened(120.0, "", Sort.BEGUN), *(seen(125.0, *one) for one in RUNS.items())]
    course = told(TAKEN, [*STAGED, *FLIPPED[:3], *begins, stands(125.0, "waiting", JOB)])
    assert [(one.phase, one.from_s) for one in course.lanes[0].spans[2:]] == [
        (WAITING, 106.0),
        (SILENT, 120.0),
        (NEW, 125.0),
    ]
    assert course.marks == [RollMark(120.0, "the parent started")]


def test_what_is_only_remembered_is_not_known():
    lost = [seen(108.0, "run", "running?"), stands(108.0, "waiting", "n1 is silent")]
    assert spans(TAKEN, [*STAGED, *FLIPPED[:3], *lost])[-1] == (
        SILENT,
        108.0,
        200.0,
        "n1 is silent",
    )


def test_a_turn_of_the_parent_is_no_phase():
    turn = [stands(110.0, "acting", "is being planned"), stands(110.02, "waiting", JOB)]
    assert spans(TAKEN, [*STAGED, *FLIPPED[:3], *turn])[-1] == (WAITING, 106.0, 200.0, JOB)


def test_one_that_was_undone_or_deleted_is_over():
    undone = changed(140.0, "roll:b", "wish", "undo", "run")
    given = changed(140.1, N1, "image", "a", "b")
    back = [seen(141.0, "applied", "current")]
    course = told([*TAKEN, DONE, undone, given], [*STAGED, *FLIPPED, *back], now_s=9_000.0)
    assert (course.lanes[0].spans[-1].phase, course.to_s) == (BACK, 141.0 + 40.5 / 8)
    assert [one.text for one in course.marks] == ["done", "to be undone"]
    deleted = changed(108.5, "roll:b", "image", None, "b")
    assert told([*TAKEN, deleted], [*STAGED, *FLIPPED]).to_s == 108.5 + 1


def test_the_last_beginning_is_found_with_its_systems_though_it_was_deleted_since():
    first = [
        changed(10.0, "roll:b", "deadline", 20, revision=1),
        changed(10.0, "roll:b", "image", "b-1", revision=1),
        *(changed(10.0, one, "attempt", 1, revision=1) for one in (N1, N2)),
    ]
    again = [
        changed(50.0, "roll:b", "deadline", 60, 20, revision=7),
        changed(50.0, "roll:b", "image", "b-2", "b-1", revision=7),
        changed(50.0, N2, "attempt", 2, 1, revision=7),
        changed(51.0, "roll:b", "deadline", 70, 60, revision=8),
        changed(52.0, N1, "attempt", 2, 1, revision=9),
        changed(53.0, "roll:b", "image", None, "b-2", revision=10),
        changed(53.0, "roll:b", "deadline", None, 70, revision=10),
    ]
    assert begun("b", first[::-1]) == RollBegun("b", "b-1", 10.0, (N1, N2), 1)
    assert begun("b", [*first, *again][::-1]) == RollBegun("b", "b-2", 50.0, (N2,), 7)


def test_what_was_never_begun_has_no_course():
    other = [changed(1.0, "roll:b", "deadline", 20), changed(1.0, N1, "attempt", 1, revision=2)]
    with pytest.raises(HapteraError, match="no roll is recorded"):
        begun("b", other)
    with pytest.raises(HapteraError, match="no roll is recorded"):
        begun("b", [])
