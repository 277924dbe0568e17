"""Jobs that another backend may begin, too: they move once they waited, and while not begun."""

import pytest

from haptera.queue.asking import ask
from haptera.queue.entry import Moment, StoredQueue, Submission
from haptera.queue.job import Job, JobSpec, JobState, Overflow, Size
from haptera.queue.queue import MS, JobQueue
from haptera.queue.reason import why
from haptera.queue.work import Assignment, Holding, HoldingPhase, WorkAsked
from haptera.rest.jobs import SubmitOverflow, SubmitSpec

SIZE = Size(4, 400)
SLURM = "backend:slurm"
AFTER_S = 300


class Desk:
    """A queue with a node, and a backend that may have what has waited."""

    def __init__(self) -> None:
        self.now = Moment(0, 1_000.0)
        self.queue = JobQueue(StoredQueue(), self.now)
        self.asked = 0

    def submit(self, *overflow: Overflow, backend: str | None = None) -> int:
        spec = JobSpec(("true",), SIZE, backend=backend, overflow=overflow)
        return self.queue.submit(Submission(owner="eve", name="it", spec=spec), self.now)[0].id

    def wait(self, seconds: float) -> None:
        self.now = Moment(self.now.ns + int(seconds * 1_000 * MS), self.now.wall_s + seconds)

    def ask(self, name: str, *held: Holding) -> tuple[Assignment, ...]:
        self.asked += 1
        backend = name.partition(":")[2] or None
        size = SIZE if backend is None else Size(1_000, 1_000_000)
        told = ask(self.queue, name, size, WorkAsked("b", self.asked, held), self.now, backend)
        self.queue.check()
        return told.work

    def job(self, key: int) -> Job:
        return self.queue.jobs[key]


def refused(work: Assignment) -> Holding:
    return Holding(work.job, work.token, HoldingPhase.REFUSED, None, "no such partition")


def test_a_job_moves_once_it_has_waited_and_not_before() -> None:
    desk = Desk()
    first, second = desk.submit(Overflow("slurm", AFTER_S)), desk.submit(Overflow("slurm", AFTER_S))
    assert [one.job for one in desk.ask("n1")] == [first]
    desk.wait(AFTER_S - 1)
    assert desk.ask(SLURM) == ()
    desk.wait(1)
    [moved] = desk.ask(SLURM)
    assert (moved.job, desk.job(second).holder) == (second, SLURM)
    # What holds it need not know where else it might be; agents of before could not read that.
    assert moved.spec.overflow == ()


def test_its_own_nodes_may_have_it_though_the_clock_was_set_back() -> None:
    desk = Desk()
    key = desk.submit(Overflow("slurm", AFTER_S))
    desk.wait(-3_600)
    assert desk.ask(SLURM) == ()
    assert [one.job for one in desk.ask("n1")] == [key]


def test_what_another_has_moves_no_more() -> None:
    desk = Desk()
    key = desk.submit(Overflow("slurm"))
    [work] = desk.ask(SLURM)
    assert desk.ask("n1") == ()
    assert desk.ask(SLURM, Holding(key, work.token, HoldingPhase.RUNNING)) == ()
    desk.wait(2 * AFTER_S)
    assert desk.ask("n1") == ()
    assert (desk.job(key).state, desk.job(key).token) == (JobState.RUNNING, work.token)


def test_nothing_moves_to_a_backend_that_it_does_not_name() -> None:
    desk = Desk()
    desk.submit(Overflow("slurm"))
    assert desk.ask("backend:other") == ()


def test_a_backend_that_refuses_it_leaves_it_to_the_others() -> None:
    desk = Desk()
    key = desk.submit(Overflow("slurm"), Overflow("other"))
    [work] = desk.ask(SLURM)
    assert desk.ask(SLURM, refused(work)) == ()
    assert desk.job(key).lane.overflow == (Overflow("other"),)
    assert desk.ask(SLURM) == ()
    assert "backend:slurm: no such partition" in why(desk.queue, desk.job(key), 1_000.0)
    [again] = desk.ask("n1")
    assert (again.job, again.token > work.token) == (key, True)


def test_its_own_backend_that_refuses_it_ends_it() -> None:
    desk = Desk()
    key = desk.submit(Overflow("other", AFTER_S), backend="slurm")
    [work] = desk.ask(SLURM)
    desk.ask(SLURM, refused(work))
    ended = desk.job(key)
    assert (ended.state, ended.reason) == (JobState.CANCELLED, "no such partition")


def test_what_is_to_stop_does_not_move_when_it_is_refused() -> None:
    desk = Desk()
    key = desk.submit(Overflow("slurm"))
    [work] = desk.ask(SLURM)
    desk.queue.cancel(key, "not wanted", desk.now)
    desk.ask(SLURM, refused(work))
    assert (desk.job(key).state, desk.job(key).reason) == (JobState.CANCELLED, "not wanted")


def test_it_is_said_where_a_job_may_begin_and_when() -> None:
    desk = Desk()
    desk.ask("n1")
    key = desk.submit(Overflow("slurm", AFTER_S), Overflow("other"))
    told = why(desk.queue, desk.job(key), desk.now.wall_s)
    assert told.endswith("; it may begin on backend slurm in 300 s, backend other too")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"image": "tools"}, "backend slurm runs no images: omit one of both"),
        ({"backend": "slurm"}, "backend slurm is named twice: name each once, with one time"),
        ({"user": "eve"}, "backend slurm runs all jobs as its own user: omit user or overflow"),
    ],
)
def test_what_no_backend_can_run_is_not_to_overflow(more: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        SubmitSpec(("true",), SIZE, overflow=(SubmitOverflow("slurm"),), **more)
