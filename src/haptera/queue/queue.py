"""The queue: jobs on their way from submission to their end, and who holds which.

Everything that changes is gathered in `changes`: nothing may be sent to anybody before these are
durable. An answer may be lost: a repeated question is answered again.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from haptera.kinds.node import NodeWork
from haptera.model.errors import Code, HapteraError
from haptera.queue.choice import Occupant, Room
from haptera.queue.duty import Duty, DutyState
from haptera.queue.entry import Holder, Moment, QueueChanges, StoredQueue, Submission
from haptera.queue.job import ACTIVE, ENDED, Job, JobSpec, JobState, Lane, RetryClass, Size
from haptera.queue.lanes import Lanes

MS: Final = 1_000_000
# For so long a holder that is not heard of keeps what it holds, by its own clock and by ours.
LEASE_MS: Final = 20_000
# A job that was given out so often and never began is not tried again.
LOCKS_MAX: Final = 10
# How many that ended are remembered; the oldest are forgotten first.
ENDED_MAX: Final = 10_000
# How many wait, or run.
JOBS_MAX: Final = 200_000
ARRAY_MAX: Final = 10_000
# Different sizes and images that wait at a time.
LANES_MAX: Final = 1_000


class JobQueue:
    """All jobs, by id; each is in exactly one place: waiting, held, or ended."""

    def __init__(self, stored: StoredQueue, now: Moment) -> None:
        self.jobs = {job.id: job for job in stored.jobs}
        self.duties: dict[str, Duty] = {}
        self.holders: dict[str, Holder] = {}
        self._job_last, self._token_last = stored.job_last, stored.token_last
        self.counts = Counter(one.state for one in stored.jobs)
        self.lanes = Lanes(one for one in stored.jobs if one.state is JobState.QUEUED)
        ended = [one for one in stored.jobs if one.state in ENDED]
        self._ended = deque(
            one.id for one in sorted(ended, key=lambda job: (job.ended_s or 0.0, job.id))
        )
        self._keys = {(one.owner, one.key): one.id for one in stored.jobs if one.key}
        self._arrays = Counter(one.array for one in stored.jobs if one.array is not None)
        self._changes = QueueChanges()
        # Who holds what was asleep with us: it has its whole lease from now on.
        for job in stored.jobs:
            if job.state in ACTIVE and job.holder is not None and job.token is not None:
                holder = self.holders.setdefault(job.holder, Holder(job.holder))
                holder.held[job.token] = job.id
                holder.lease_ns = now.ns + LEASE_MS * MS

    def ended(self) -> Iterator[Job]:
        """Those that ended and are not forgotten."""
        return (self.jobs[key] for key in self._ended)

    def changes(self) -> QueueChanges:
        """What is to be written now; it counts as written from here on."""
        changes, self._changes = self._changes, QueueChanges()
        changes.job_last, changes.token_last = self._job_last, self._token_last
        return changes

    def submit(self, one: Submission, now: Moment) -> list[Job]:
        """Queue jobs, an array where a count is given; those of its key where it was done before.

        Raises:
            HapteraError: there is no room for so many.
        """
        if one.key is not None and (first := self._keys.get((one.owner, one.key))) is not None:
            return self._array_of(self.jobs[first])
        count = 1 if one.count is None else one.count
        self._check_room(one.spec, count)
        array = None if one.count is None else self._job_last + 1
        made = [
            Job(
                id=self._job_last + 1 + at,
                name=one.name,
                owner=one.owner,
                spec=one.spec,
                priority=one.priority,
                submitted_s=now.wall_s,
                array=array,
                index=None if array is None else at,
                key=one.key if at == 0 else None,
            )
            for at in range(count)
        ]
        self._job_last += count
        if one.key is not None:
            self._keys[one.owner, one.key] = made[0].id
        for job in made:
            self.put(job)
        return made

    def cancel(self, key: int, reason: str, now: Moment) -> Job:
        """Have a job ended, or never begun; one that ended stays as it is.

        Raises:
            HapteraError: there is no such job.
        """
        job = self.job(key)
        if job.state is JobState.QUEUED:
            self.end(job, JobState.CANCELLED, now, reason=reason)
        elif job.state in ACTIVE:
            self.put(replace(job, stopping=reason, again=False))
        return self.jobs[key]

    def prioritize(self, key: int, priority: int) -> Job:
        """Give a job another priority, which counts from the next decision on.

        Raises:
            HapteraError: there is no such job, or it does not wait any more.
        """
        job = self.job(key)
        if job.state is not JobState.QUEUED:
            what = f"job {key} is {job.state}: its priority has no effect any more"
            raise HapteraError(what, do="submit another", code=Code.CONFLICT)
        self.put(replace(job, priority=priority))
        return self.jobs[key]

    def job(self, key: int) -> Job:
        """A job by its number.

        Raises:
            HapteraError: there is no such job.
        """
        found = self.jobs.get(key)
        if found is None:
            do = "see which there are: haptera jobs"
            raise HapteraError(f"there is no job {key}", do=do, code=Code.NOT_FOUND)
        return found

    def set_duty(self, name: str, duty: Duty | None) -> None:
        """Have a holder take no new jobs, or again, which ends a drain; it is stored elsewhere."""
        if duty is None:
            self.duties.pop(name, None)
        else:
            self.duties[name] = duty

    def expire(self, now: Moment) -> list[str]:
        """Take from holders that were silent beyond their lease what they held; who these are."""
        lost = [one.name for one in self.holders.values() if one.lease_ns <= now.ns]
        for name in lost:
            self.lose(name, now, f"{name} was lost")
        return lost

    def lose(self, name: str, now: Moment, reason: str) -> None:
        """Take from a holder that is known to be gone what it held, whatever its lease."""
        holder = self.holders.get(name)
        if holder is None:
            return
        for key in list(holder.held.values()):
            self.release(self.jobs[key], now, reason)
        del self.holders[name]

    def duty(self, name: str) -> DutyState:
        """Where a holder stands."""
        holder, wanted = self.holders.get(name), self.duties.get(name)
        busy = holder is not None and bool(holder.held)
        match None if wanted is None else wanted.work:
            case NodeWork.DRAINING:
                return DutyState.DRAINING if busy else DutyState.DRAINED
            case NodeWork.HELD:
                return DutyState.HOLD
            case NodeWork.FAILED:
                return DutyState.FAILED
            case _:
                pass
        if busy:
            return DutyState.BUSY
        return DutyState.IDLE if holder is not None and holder.open else DutyState.ABSENT

    def rooms(self, backend: str | None) -> list[Room]:
        """What there is of all holders that take jobs now, drained and silent ones left out."""
        return [
            self.room(one)
            for one in self.holders.values()
            if one.open and one.backend == backend and one.name not in self.duties
        ]

    def check(self) -> None:
        """Assert what always holds."""
        tokens = [one.token for one in self.jobs.values() if one.token is not None]
        assert len(tokens) == len(set(tokens)), "a token belongs to one job"
        assert all(one <= self._token_last for one in tokens)
        assert +self.counts == Counter(one.state for one in self.jobs.values())
        for job in self.jobs.values():
            holder = self.holders.get(job.holder or "")
            held = holder is not None and job.token is not None and job.token in holder.held
            assert (job.id in self.lanes) == (job.state is JobState.QUEUED), job
            assert held == (job.state in ACTIVE), job
        for holder in self.holders.values():
            for token, key in holder.held.items():
                assert (self.jobs[key].token, self.jobs[key].holder) == (token, holder.name)

    def release(self, job: Job, now: Moment, reason: str) -> None:
        """Its holder has it no more, and nobody can say how it ended."""
        if (
            job.stopping is None
            and job.state is JobState.RUNNING
            and job.spec.retry is RetryClass.NEVER
        ):
            why = f"{reason} while it ran, and it must not run again (retry: never)"
            self.end(job, JobState.CANCELLED, now, reason=why)
        else:
            self.give_back(job, now, reason)

    def give_back(self, job: Job, now: Moment, reason: str) -> None:
        """It may be given to another: nothing of it has run, or it is to be run again."""
        if job.stopping is not None:
            self.stopped(job, now, None)
        elif job.locks >= LOCKS_MAX:
            why = f"assigned {job.locks} times without success: {reason}"
            self.end(job, JobState.CANCELLED, now, reason=why)
        else:
            self.put(_queued(job, reason))

    def decline(self, job: Job, holder: Holder, now: Moment, reason: str | None) -> None:
        """Its holder will never run it; where it only overflowed to that, others may."""
        if holder.backend is None or holder.backend == job.spec.backend:
            self.end(job, JobState.CANCELLED, now, reason=reason)
            return
        declined = (*job.declined, holder.backend)
        self.give_back(replace(job, declined=declined), now, f"{holder.name}: {reason}")

    def lock(self, job: Job, holder: Holder) -> Job:
        """Give a job to a holder, under a token of its own."""
        self._token_last += 1
        given = replace(
            job,
            state=JobState.LOCKED,
            token=self._token_last,
            holder=holder.name,
            locks=job.locks + 1,
            reason=None,
        )
        self.put(given)
        return given

    def stopped(self, job: Job, now: Moment, status: int | None) -> None:
        """It was stopped, or never began, as it was to be."""
        if job.again and job.locks < LOCKS_MAX:
            self.put(_queued(job, job.stopping))
        else:
            self.end(job, JobState.CANCELLED, now, status=status, reason=job.stopping)

    def room(self, holder: Holder) -> Room:
        """What a holder has, and who is there."""
        held = [self.jobs[key] for key in holder.held.values()]
        return Room(
            holder.name,
            holder.capacity,
            holder.free,
            tuple(Occupant(one.spec.size, ends_s(one)) for one in held),
            holder.images is not None,
        )

    def measure(self, holder: Holder) -> None:
        """Compute the free room of a holder from the jobs that it has."""
        free = holder.capacity
        for key in holder.held.values():
            free -= self.jobs[key].spec.size
        # It may have become smaller under what runs on it.
        holder.free = Size(max(0, free.cpus), max(0, free.memory_mb))

    def end(
        self,
        job: Job,
        state: JobState,
        now: Moment,
        *,
        status: int | None = None,
        reason: str | None = None,
    ) -> None:
        """It is over; the oldest that are so are forgotten."""
        self.put(
            replace(
                job,
                state=state,
                ended_s=now.wall_s,
                status=status,
                reason=reason,
                stopping=None,
                again=False,
            )
        )
        self._ended.append(job.id)
        while len(self._ended) > ENDED_MAX:
            self._forget(self._ended.popleft())

    def _forget(self, key: int) -> None:
        job = self.jobs.pop(key)
        self.counts[job.state] -= 1
        if job.key is not None:
            self._keys.pop((job.owner, job.key), None)
        if job.array is not None:
            self._arrays[job.array] -= 1
            if not self._arrays[job.array]:
                del self._arrays[job.array]
                self._changes.arrays_gone.add(job.array)
        self._changes.jobs[key] = None

    def put(self, job: Job) -> None:
        """Keep a job as it is now, in the place that its state says."""
        before = self.jobs.get(job.id)
        if before is not None:
            self.counts[before.state] -= 1
        self.counts[job.state] += 1
        if before is None and job.array is not None:
            self._arrays[job.array] += 1
        if before is not None and before.state in ACTIVE:
            assert before.holder is not None
            assert before.token is not None
            self.holders[before.holder].held.pop(before.token)
        if job.state is JobState.QUEUED:
            self.lanes.add(job)
        else:
            self.lanes.discard(job.id)
        self.jobs[job.id] = job
        if job.state in ACTIVE:
            assert job.holder is not None
            assert job.token is not None
            self.holders[job.holder].held[job.token] = job.id
        for name in (None if before is None else before.holder, job.holder):
            if name in self.holders:
                self.measure(self.holders[name])
        self._changes.jobs[job.id] = job

    def _check_room(self, spec: JobSpec, count: int) -> None:
        alive = len(self.jobs) - len(self._ended)
        if alive + count > JOBS_MAX:
            what = f"{alive} jobs wait or run, and {JOBS_MAX} may"
            raise HapteraError(what, do="submit fewer", code=Code.TOO_MANY)
        lanes = self.lanes.counts()
        lane = Lane(spec.backend, spec.size, spec.image, spec.overflow)
        if len(lanes) >= LANES_MAX and lane not in lanes:
            what = f"jobs of {LANES_MAX} different sizes and images wait already"
            do = "request a size that other jobs in this image request too"
            raise HapteraError(what, do=do, code=Code.TOO_MANY)

    def _array_of(self, first: Job) -> list[Job]:
        if first.array is None:
            return [first]
        found: list[Job] = []
        key = first.id
        while (job := self.jobs.get(key)) is not None and job.array == first.array:
            found.append(job)
            key += 1
        return found


def ends_s(job: Job) -> float:
    """When a job is over at the latest."""
    if job.spec.time_limit_s is None or job.began_s is None:
        return float("inf")
    return job.began_s + job.spec.time_limit_s


def _queued(job: Job, reason: str | None) -> Job:
    """Waiting again, in its old place."""
    return replace(
        job,
        state=JobState.QUEUED,
        holder=None,
        began_s=None,
        reason=reason,
        stopping=None,
        again=False,
    )
