"""A holder asks for work: what it reports is taken in, its lease renewed, and jobs are given to it.

What it does not hold rightfully is to be stopped; what it does not know that it holds, for
an answer was lost, is given again.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from haptera.kinds.node import NodeWork
from haptera.model.text import showable
from haptera.queue.choice import choose
from haptera.queue.duty import Duty, own
from haptera.queue.entry import Holder, Moment
from haptera.queue.job import Job, JobState, RetryClass, Size
from haptera.queue.queue import LEASE_MS, MS, JobQueue
from haptera.queue.work import (
    REASON_CHARS_MAX,
    Assignment,
    Holding,
    HoldingPhase,
    StopOrder,
    WorkAsked,
    WorkTold,
)

# So many are given out at once.
ASSIGNED_MAX: Final = 16
# Between TERM and KILL.
GRACE_MS: Final = 10_000
# What is said of the end of what runs on a node by that node's duty.
_ENDS: Final = {NodeWork.DRAINING: "was drained until its deadline", NodeWork.FAILED: "failed"}
# These may be forgotten by who reports them, whatever becomes of the job.
_OVER: Final = (HoldingPhase.ENDED, HoldingPhase.RETURNED, HoldingPhase.REFUSED)
_QUIET: Final = (*_OVER, HoldingPhase.STOPPING)


def ask(
    queue: JobQueue,
    name: str,
    capacity: Size,
    asked: WorkAsked,
    now: Moment,
    backend: str | None = None,
) -> WorkTold:
    """The answer to a holder; true once the queue's changes are durable."""
    holder = queue.holders.setdefault(name, Holder(name))
    if holder.asked[0] == asked.boot and holder.asked[1] >= asked.number:
        return WorkTold(duty=queue.duty(name))  # overtaken by a later one
    holder.asked = (asked.boot, asked.number)
    holder.backend, holder.capacity, holder.limits = backend, capacity, asked.limits
    holder.images = None if asked.images is None else frozenset(asked.images)
    _take_word(queue, name, asked.failed)
    return tell(queue, holder, asked, now)


def tell(queue: JobQueue, holder: Holder, asked: WorkAsked, now: Moment) -> WorkTold:
    """As `ask`, for what was asked last; again where there was nothing to tell before."""
    holder.open = asked.open
    holder.lease_ns = now.ns + LEASE_MS * MS
    queue.measure(holder)
    noted = tuple(one.token for one in asked.held if _note(queue, holder, one, now))
    _stop_overdue(queue, holder, now)
    given = [*_given_before(queue, holder, asked, now), *_assign(queue, holder, now)]
    holder.idle_since_s = None if holder.held else (holder.idle_since_s or now.wall_s)
    return WorkTold(
        tuple(_assignment(job) for job in given),
        tuple(_stops(queue, holder, asked)),
        noted,
        LEASE_MS,
        queue.duty(holder.name),
    )


def has_news(queue: JobQueue, holder: Holder, now: Moment) -> bool:
    """Whether there may be news that the holder does not have."""
    if any(queue.jobs[key].stopping is not None for key in holder.held.values()):
        return True
    duty = queue.duties.get(holder.name)
    if duty is not None:
        return bool(holder.held) and _is_due(duty, now)
    takes = holder.open and holder.free.cpus
    heads = queue.lanes.heads(holder.backend, now.wall_s) if takes else []
    room = queue.room(holder)
    return any(room.can_hold(one) for one in heads)


def preference(queue: JobQueue, holder: Holder, now: Moment) -> tuple[Size, bool, str]:
    """Holders are given work in this order: a small job goes to a small node.

    Of nodes with as much room, those come first that have an image which a next job asks for.
    """
    asked = {head.spec.image for head in queue.lanes.heads(holder.backend, now.wall_s)}
    return holder.free, asked.isdisjoint(holder.images or ()), holder.name


def _take_word(queue: JobQueue, name: str, failed: str | None) -> None:
    """A node says that it is unfit for jobs, or no more; what others want of it goes before."""
    who, duty = own(name), queue.duties.get(name)
    if duty is not None and duty.who != who:
        return
    said = None
    if failed is not None:
        said = Duty(NodeWork.FAILED, showable(failed, REASON_CHARS_MAX), who)
    if said != duty:
        queue.set_duty(name, said)


def _note(queue: JobQueue, holder: Holder, one: Holding, now: Moment) -> bool:
    """Take in one report, if it is of its own; whether its token is as it says from now on."""
    if holder.held.get(one.token) != one.job:
        return one.phase in _OVER
    job, one = queue.jobs[one.job], _shown(one)
    match one.phase:
        case HoldingPhase.LOCKED | HoldingPhase.STOPPING:
            return False
        case HoldingPhase.RUNNING:
            return _note_running(queue, job, now)
        case HoldingPhase.RETURNED:
            queue.give_back(job, now, one.reason or f"{holder.name} cannot run it")
        case HoldingPhase.REFUSED:
            queue.decline(job, holder, now, one.reason)
        case HoldingPhase.ENDED:
            _note_ended(queue, job, one, now)
    return True


def _shown(one: Holding) -> Holding:
    """With a reason fit for people, whatever a node says: else none of its jobs would be."""
    if one.reason is None:
        return one
    return replace(one, reason=showable(one.reason, REASON_CHARS_MAX))


def _note_running(queue: JobQueue, job: Job, now: Moment) -> bool:
    if job.state is JobState.RUNNING:
        return True
    if job.stopping is not None:
        return False  # nothing of it has run, and nothing will
    queue.put(replace(job, state=JobState.RUNNING, began_s=now.wall_s))
    return True


def _note_ended(queue: JobQueue, job: Job, one: Holding, now: Moment) -> None:
    if one.status == 0:
        queue.end(job, JobState.COMPLETE, now, status=0)
    elif job.stopping is not None:
        queue.stopped(job, now, one.status)
    elif one.status is None:
        queue.release(job, now, one.reason or f"{job.holder} does not know how it ended")
    else:
        queue.end(job, JobState.FAILED, now, status=one.status, reason=one.reason)


def _stop_overdue(queue: JobQueue, holder: Holder, now: Moment) -> None:
    """Stop what still runs at the deadline of a drain, and whatever a failed node has."""
    duty = queue.duties.get(holder.name)
    if duty is None or not _is_due(duty, now):
        return
    for key in list(holder.held.values()):
        job = queue.jobs[key]
        if job.stopping is None:
            again = job.spec.retry is RetryClass.LOST or job.state is JobState.LOCKED
            why = f"{holder.name} {_ENDS[duty.work]}: {duty.reason}"
            queue.put(replace(job, stopping=why, again=again))


def _is_due(duty: Duty, now: Moment) -> bool:
    if duty.work is NodeWork.DRAINING:
        return duty.deadline_s is not None and now.wall_s >= duty.deadline_s
    return duty.work is NodeWork.FAILED


def _given_before(queue: JobQueue, holder: Holder, asked: WorkAsked, now: Moment) -> list[Job]:
    """What it does not know to hold: given again where it cannot have begun."""
    known = {one.token for one in asked.held}
    again: list[Job] = []
    for token, key in list(holder.held.items()):
        job = queue.jobs[key]
        if token in known:
            continue
        if job.state is JobState.LOCKED and job.stopping is None:
            again.append(job)
        else:
            queue.release(job, now, f"{holder.name} does not know it any more")
    return again


def _assign(queue: JobQueue, holder: Holder, now: Moment) -> list[Job]:
    """Lock what the holder is to have."""
    given: list[Job] = []
    if not holder.open or holder.name in queue.duties:
        return given
    while len(given) < ASSIGNED_MAX and holder.free.cpus:
        heads, here = queue.lanes.heads(holder.backend, now.wall_s), queue.room(holder)
        chosen = choose(heads, here, lambda: queue.rooms(holder.backend), now.wall_s)
        if chosen is None:
            break
        given.append(queue.lock(chosen, holder))
    return given


def _stops(queue: JobQueue, holder: Holder, asked: WorkAsked) -> Iterable[StopOrder]:
    for one in asked.held:
        job = queue.jobs.get(holder.held.get(one.token, -1))
        if one.phase in _QUIET:
            continue
        if job is None:
            yield StopOrder(one.token, 0, "another node has it now, or it has ended")
        elif job.stopping is not None:
            yield StopOrder(one.token, GRACE_MS, job.stopping)


def _assignment(job: Job) -> Assignment:
    assert job.token is not None
    # Where else it might have begun is nothing to its holder, and unknown to older ones.
    spec = replace(job.spec, overflow=()) if job.spec.overflow else job.spec
    return Assignment(job.id, job.token, job.name, spec, job.array, job.index)
