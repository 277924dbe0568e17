"""The order of jobs that wait, against a plain list that is sorted anew each time."""

from hypothesis import given
from hypothesis import strategies as st

from haptera.queue.job import Job, JobSpec, Lane, Size
from haptera.queue.lanes import Lanes

SIZES = [Size(1, 1), Size(2, 1)]
steps = st.lists(
    st.tuples(st.sampled_from(["add", "add", "discard"]), st.integers(1, 12), st.integers(0, 2)),
    max_size=60,
)


@given(steps)
def test_a_lane_is_in_the_order_of_priority_and_submission(
    some: list[tuple[str, int, int]],
) -> None:
    lanes, plain = Lanes(), dict[int, Job]()
    for what, key, priority in some:
        if what == "add":
            spec = JobSpec(("true",), SIZES[key % 2])
            job = Job(key, "it", "eve", spec, priority, 0.0)
            lanes.add(job)
            plain[key] = job
        else:
            lanes.discard(key)
            plain.pop(key, None)
        for size in SIZES:
            order = sorted(
                (one for one in plain.values() if one.spec.size == size),
                key=lambda one: (-one.priority, one.id),
            )
            assert [one for one in lanes.heads(None, 0.0) if one.spec.size == size] == order[:1]
            assert [lanes.ahead(one) for one in order] == list(range(len(order)))
            assert lanes.counts().get(Lane(None, size), 0) == len(order)
        assert len(lanes) == len(plain)
