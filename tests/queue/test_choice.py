"""Which job a holder gets, against a plainer model: try every start, and see who is delayed."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from haptera.queue.choice import AGED_AFTER_S, RESERVATIONS_MAX, Occupant, Room, choose, urgency
from haptera.queue.job import Job, JobSpec, Size

NOW_S = 1_000.0
sizes = st.builds(Size, st.integers(1, 4), st.just(1))


@st.composite
def rooms(draw: st.DrawFn) -> list[Room]:
    found = []
    for at in range(draw(st.integers(1, 3))):
        capacity = free = Size(draw(st.sampled_from([4, 4, 2])), 8)
        there = []
        for size in draw(st.lists(sizes, min_size=1, max_size=3)):
            if free.fits(size):
                free -= size
                there.append(Occupant(size, NOW_S + draw(st.sampled_from([1, 3, 6]))))
        found.append(Room(f"n{at}", capacity, free, tuple(there)))
    return found


@st.composite
def heads(draw: st.DrawFn) -> list[Job]:
    lanes = draw(st.lists(sizes, unique=True, min_size=1, max_size=RESERVATIONS_MAX))
    return [
        Job(
            id=at,
            name="it",
            owner="eve",
            spec=JobSpec(("true",), size, draw(st.sampled_from([None, 2, 9]))),
            # The larger ones first, as a rule: these are blocked.
            priority=draw(st.integers(0, 1)) + size.cpus,
            submitted_s=NOW_S - draw(st.sampled_from([0, 0, 0, 1_000])),
        )
        for at, size in enumerate(lanes)
    ]


def starts_s(job: Job, there: list[Room]) -> float:
    """When some node has room for a job, if nothing else ever begins: each moment is tried."""
    ends = {one.ends_s for room in there for one in room.occupants if one.ends_s < inf}
    for at_s in sorted({NOW_S, *ends}):
        for room in there:
            left = [one.size for one in room.occupants if one.ends_s > at_s]
            free = room.capacity
            for one in left:
                free -= one
            if free.fits(job.spec.size):
                return at_s
    return inf


def with_job(job: Job, asker: str, there: list[Room]) -> list[Room]:
    """The same, once a job has begun at the asker's."""
    limit_s = job.spec.time_limit_s
    begun = Occupant(job.spec.size, inf if limit_s is None else NOW_S + limit_s)
    return [
        Room(one.holder, one.capacity, one.free - job.spec.size, (*one.occupants, begun))
        if one.holder == asker
        else one
        for one in there
    ]


@given(rooms(), heads())
def test_what_begins_never_delays_the_first_job_that_is_blocked(
    there: list[Room], waiting: list[Job]
) -> None:
    for here in there:
        chosen = choose(waiting, here, lambda: there, NOW_S)
        if chosen is None:
            continue
        assert here.free.fits(chosen.spec.size)
        order = sorted(waiting, key=lambda job: urgency(job, NOW_S))
        before = order[: order.index(chosen)]
        blocked = [one for one in before if NOW_S < starts_s(one, there) < inf]
        if blocked:
            first = blocked[0]
            assert starts_s(first, with_job(chosen, here.holder, there)) == starts_s(first, there)


@given(rooms(), heads())
def test_a_node_stays_empty_only_for_a_job_whose_place_is_kept_there(
    there: list[Room], waiting: list[Job]
) -> None:
    for here in there:
        fitting = [one for one in waiting if here.free.fits(one.spec.size)]
        if fitting and choose(waiting, here, lambda: there, NOW_S) is None:
            assert any(
                NOW_S < starts_s(one, there) < inf and here.capacity.fits(one.spec.size)
                for one in waiting
            )


@given(rooms(), heads())
def test_a_job_that_no_node_can_hold_changes_nothing(there: list[Room], waiting: list[Job]) -> None:
    giant = changed(waiting[0], id=99, priority=99, spec=JobSpec(("true",), Size(64, 1)))
    for here in there:
        with_giant = choose([giant, *waiting], here, lambda: there, NOW_S)
        assert with_giant == choose(waiting, here, lambda: there, NOW_S)


@pytest.mark.parametrize(("waited_s", "goes_first"), [(AGED_AFTER_S - 1, 2), (AGED_AFTER_S, 1)])
def test_what_has_waited_for_ten_minutes_goes_before_any_priority_of_other_sizes(
    waited_s: float, goes_first: int
) -> None:
    def head(number: int, priority: int, submitted_s: float) -> Job:
        spec = JobSpec(("true",), Size(number, 1), None)
        return Job(number, "it", "eve", spec, priority=priority, submitted_s=submitted_s)

    room = Room("n1", Size(2, 2), Size(2, 2))
    waiting = [head(1, 0, NOW_S - waited_s), head(2, 1_000_000, NOW_S)]
    chosen = choose(waiting, room, lambda: [room], NOW_S)
    assert chosen is not None
    assert chosen.id == goes_first
