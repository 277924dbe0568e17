"""Holders ask the queue: what each is told, and what it is not."""

from msgspec.structs import replace

from haptera.kinds.node import NodeWork
from haptera.queue.asking import ask
from haptera.queue.duty import Duty, DutyState
from haptera.queue.entry import Moment, StoredQueue, Submission
from haptera.queue.job import JobSpec, JobState, RetryClass, Size
from haptera.queue.queue import LEASE_MS, LOCKS_MAX, MS, JobQueue
from haptera.queue.reason import why
from haptera.queue.work import REASON_CHARS_MAX, Holding, HoldingPhase, WorkAsked, WorkTold

SMALL, LARGE = Size(1, 100), Size(4, 400)


class Desk:
    """A queue, a clock, and holders that ask."""

    def __init__(self) -> None:
        self.now = Moment(0, 1_000.0)
        self.queue = JobQueue(StoredQueue(), self.now)
        self.asked = 0

    def submit(self, size: Size = SMALL, **other: object) -> int:
        limit = other.pop("time_limit_s", None)
        retry = other.pop("retry", RetryClass.NEVER)
        spec = JobSpec(("true",), size, limit, retry)  # type: ignore[arg-type]
        made = self.queue.submit(Submission(owner="eve", name="it", spec=spec, **other), self.now)  # type: ignore[arg-type]
        return made[0].id

    def ask(
        self,
        name: str,
        *held: Holding,
        size: Size = LARGE,
        open: bool = True,
        failed: str | None = None,
    ) -> WorkTold:
        self.asked += 1
        asked = WorkAsked("b", self.asked, held, open, failed=failed)
        told = ask(self.queue, name, size, asked, self.now)
        self.queue.check()
        return told

    def take(self, name: str, size: Size = LARGE) -> list[int]:
        return [one.job for one in self.ask(name, *self.holdings(name), size=size).work]

    def holdings(self, name: str) -> list[Holding]:
        holder = self.queue.holders.get(name)
        held = {} if holder is None else holder.held
        return [Holding(job, token, HoldingPhase.LOCKED) for token, job in held.items()]

    def run(self, name: str, job: int) -> int:
        """Has it run; its token."""
        token = self.queue.jobs[job].token
        assert token is not None
        told = self.ask(name, Holding(job, token, HoldingPhase.RUNNING), open=False)
        assert told.noted == (token,)
        return token

    def state(self, job: int) -> JobState:
        return self.queue.jobs[job].state

    def after(self, ms: int) -> None:
        self.now = Moment(self.now.ns + ms * MS, self.now.wall_s + ms / 1_000)
        self.queue.expire(self.now)


def test_many_ask_at_once_for_one_job_and_exactly_one_gets_it() -> None:
    desk = Desk()
    job = desk.submit()
    given = [one.job for n in range(200) for one in desk.ask(f"n{n}").work]
    assert given == [job]


def test_a_job_that_no_node_can_hold_blocks_nobody_and_says_what_is_missing() -> None:
    desk = Desk()
    giant = desk.submit(Size(64, 100), priority=9)
    small = [desk.submit() for _ in range(3)]
    assert desk.take("n1") == small
    assert why(desk.queue, desk.queue.jobs[giant], desk.now.wall_s) == (
        "no node is large enough for 64 CPUs, 100 MB: 60 CPUs missing; there are 1 x 4 CPUs, 400 MB"
    )


def test_a_node_that_is_large_enough_but_silent_or_closed_is_named() -> None:
    desk = Desk()
    giant = desk.submit(Size(64, 100))
    desk.ask("n1")
    desk.queue.set_duty("n3", Duty(NodeWork.DRAINING, "a new disk", "eve"))
    declared = [("n1", LARGE), ("n2", Size(64, 512)), ("n3", Size(64, 512)), ("n4", Size(64, 99))]

    def told() -> str:
        return why(desk.queue, desk.queue.jobs[giant], desk.now.wall_s, declared)

    assert told() == (
        "no node that is large enough takes jobs now:"
        " n2 does not request work, n3 is drained (a new disk)"
    )
    desk.ask("n2", size=Size(64, 512), open=False)
    assert "n2 starts no jobs now" in told()


def test_priority_is_exact_in_a_lane_and_a_change_counts_from_the_next_decision() -> None:
    desk = Desk()
    low, high, mid = (desk.submit(LARGE, priority=one) for one in (1, 9, 5))
    assert desk.take("n1") == [high]
    desk.queue.prioritize(low, 7)
    assert desk.take("n2") == [low]
    assert desk.take("n3") == [mid]


def test_a_lost_answer_is_found_by_asking_again() -> None:
    desk = Desk()
    job = desk.submit()
    lost = desk.ask("n1")
    assert desk.ask("n1").work == lost.work
    assert desk.queue.jobs[job].locks == 1


def test_what_was_overtaken_by_a_later_asking_is_not_heeded() -> None:
    desk = Desk()
    job = desk.submit()
    desk.take("n1")
    desk.run("n1", job)
    late = WorkAsked("b", 1)
    assert ask(desk.queue, "n1", LARGE, late, desk.now).work == ()
    assert desk.state(job) is JobState.RUNNING


def test_the_token_of_one_node_neither_begins_nor_ends_anything_for_another() -> None:
    desk = Desk()
    job = desk.submit()
    desk.take("n1")
    token = desk.queue.jobs[job].token
    assert token is not None
    for phase in HoldingPhase:
        desk.ask("n2", Holding(job, token, phase, 0), open=False)
        assert desk.state(job) is JobState.LOCKED
    told = desk.ask("n2", Holding(job, token, HoldingPhase.RUNNING), open=False)
    assert (told.noted, [one.token for one in told.stop]) == ((), [token])


def test_a_locked_job_of_a_lost_node_is_queued_again_and_the_lost_one_is_told_to_stop() -> None:
    desk = Desk()
    job = desk.submit()
    desk.take("n1")
    before = desk.queue.jobs[job].token
    assert before is not None
    desk.after(LEASE_MS)
    assert desk.take("n2") == [job]
    told = desk.ask("n1", Holding(job, before, HoldingPhase.RUNNING), open=False)
    assert (told.noted, [one.token for one in told.stop]) == ((), [before])


def test_a_running_job_of_a_lost_node_is_cancelled_or_queued_as_its_retry_class_says() -> None:
    desk = Desk()
    once, again = desk.submit(), desk.submit(retry=RetryClass.LOST)
    desk.take("n1")
    for job in (once, again):
        token = desk.queue.jobs[job].token
        assert token is not None
        desk.ask("n1", *_running(desk, "n1"), open=False)
    desk.after(LEASE_MS)
    assert (desk.state(once), desk.state(again)) == (JobState.CANCELLED, JobState.QUEUED)
    assert desk.queue.jobs[once].reason == (
        "n1 was lost while it ran, and it must not run again (retry: never)"
    )


def test_a_job_that_never_begins_is_cancelled_with_its_reason_at_the_lock_limit() -> None:
    desk = Desk()
    job = desk.submit()
    for _ in range(LOCKS_MAX):
        desk.take("n1")
        desk.after(LEASE_MS)
    assert desk.queue.jobs[job].reason == f"assigned {LOCKS_MAX} times without success: n1 was lost"
    assert desk.state(job) is JobState.CANCELLED


def test_what_a_holder_refuses_for_good_is_cancelled_at_once_in_its_words() -> None:
    desk = Desk()
    job = desk.submit()
    desk.take("n1")
    token = desk.queue.jobs[job].token
    assert token is not None
    told = desk.ask("n1", Holding(job, token, HoldingPhase.REFUSED, None, "no such partition"))
    assert told.noted == (token,)
    assert (desk.state(job), desk.queue.jobs[job].reason, desk.queue.jobs[job].locks) == (
        JobState.CANCELLED,
        "no such partition",
        1,
    )


def test_a_draining_node_gets_nothing_ever_and_is_drained_once_its_job_ends() -> None:
    desk = Desk()
    job = desk.submit()
    desk.take("n1")
    token = desk.run("n1", job)
    desk.queue.set_duty("n1", Duty(NodeWork.DRAINING, "new disk", "eve"))
    desk.submit()
    running = Holding(job, token, HoldingPhase.RUNNING)
    assert all(not desk.ask("n1", running).work for _ in range(1000))
    assert desk.queue.duty("n1") is DutyState.DRAINING
    told = desk.ask("n1", replace(running, phase=HoldingPhase.ENDED, status=0))
    assert (told.work, told.duty) == ((), DutyState.DRAINED)
    desk.queue.set_duty("n1", None)
    assert len(desk.ask("n1").work) == 1


def test_a_node_fails_itself_for_as_long_as_it_says_so() -> None:
    desk = Desk()
    job = desk.submit()
    desk.take("n1")
    held = Holding(job, desk.run("n1", job), HoldingPhase.RUNNING)
    told = desk.ask("n1", held, failed="its disk gives errors")
    assert (told.duty, [one.reason for one in told.stop]) == (
        DutyState.FAILED,
        ["n1 failed: its disk gives errors"],
    )
    desk.ask("n1", replace(held, phase=HoldingPhase.ENDED, status=-15), failed="its disk …")
    desk.submit()
    assert desk.ask("n1", failed="its disk …").work == ()
    assert len(desk.ask("n1").work) == 1


def test_what_a_node_says_of_itself_undoes_nothing_that_others_want() -> None:
    desk = Desk()
    held = Duty(NodeWork.HELD, "looked into", "user:eve")
    desk.queue.set_duty("n1", held)
    desk.ask("n1", failed="its disk gives errors")
    desk.ask("n1")
    assert desk.queue.duties == {"n1": held}


def test_at_the_deadline_of_a_drain_what_runs_is_stopped_and_says_why() -> None:
    desk = Desk()
    once, again = desk.submit(), desk.submit(retry=RetryClass.LOST)
    desk.take("n1")
    desk.ask("n1", *_running(desk, "n1"), open=False)
    deadline = desk.now.wall_s + 5
    desk.queue.set_duty("n1", Duty(NodeWork.DRAINING, "new disk", "eve", deadline))
    assert desk.ask("n1", *_running(desk, "n1")).stop == ()
    desk.after(5_000)
    told = desk.ask("n1", *_running(desk, "n1"))
    reason = "n1 was drained until its deadline: new disk"
    assert [one.reason for one in told.stop] == [reason, reason]
    desk.ask(
        "n1", *(replace(one, phase=HoldingPhase.ENDED, status=-15) for one in _running(desk, "n1"))
    )
    assert (desk.state(once), desk.state(again)) == (JobState.CANCELLED, JobState.QUEUED)
    assert desk.queue.jobs[once].reason == reason


def test_the_place_of_a_blocked_job_is_kept_and_only_what_is_over_by_then_goes_before_it() -> None:
    desk = Desk()
    first = desk.submit(Size(3, 300), time_limit_s=60)
    desk.take("n1")
    desk.run("n1", first)
    head = desk.submit(LARGE, priority=5)
    endless, long, short = desk.submit(), desk.submit(time_limit_s=61), desk.submit(time_limit_s=60)
    held = _running(desk, "n1")
    assert desk.ask("n1", *held).work == ()  # the head of that lane is endless
    desk.queue.cancel(endless, "-", desk.now)
    desk.queue.cancel(long, "-", desk.now)
    assert [one.job for one in desk.ask("n1", *held).work] == [short]
    assert why(desk.queue, desk.queue.jobs[head], desk.now.wall_s) == (
        "it is next of its size: the next place on n1 is reserved for it"
    )


def test_the_same_key_of_the_same_owner_is_queued_once() -> None:
    desk = Desk()
    first = desk.submit(count=3, key="k")
    assert desk.submit(count=3, key="k") == first
    assert len(desk.queue.jobs) == 3


def _running(desk: Desk, name: str) -> list[Holding]:
    return [replace(one, phase=HoldingPhase.RUNNING) for one in desk.holdings(name)]


def test_what_a_node_says_of_an_end_is_told_as_a_line_however_long() -> None:
    desk = Desk()
    job = desk.submit()
    desk.ask("n1")
    token = desk.run("n1", job)

    desk.ask("n1", Holding(job, token, HoldingPhase.ENDED, 127, "\x1b" * 5_000))

    assert desk.queue.jobs[job].reason == "?" * REASON_CHARS_MAX
