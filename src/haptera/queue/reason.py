"""Why a job is not done: what it waits for, what there is, and what is missing."""

from collections.abc import Iterable
from math import ceil
from typing import Final

from haptera.queue.choice import reserve, urgency
from haptera.queue.duty import DutyState
from haptera.queue.entry import Holder
from haptera.queue.job import Job, JobState, Size
from haptera.queue.queue import JobQueue

NAMES_MAX = 4
_NO_IMAGES: Final = "no node runs jobs in images: they need root and runc there"


def why(queue: JobQueue, job: Job, now_s: float, declared: Iterable[tuple[str, Size]] = ()) -> str:
    """In a sentence, for people; `declared` are all nodes for jobs, whether they ask or not."""
    match job.state:
        case JobState.QUEUED:
            return _why_queued(queue, job, now_s, declared)
        case JobState.LOCKED:
            return f"{job.holder} has it and is about to start" + _stopping(job)
        case JobState.RUNNING:
            return f"on {job.holder}" + _stopping(job)
        case JobState.COMPLETE:
            return f"on {job.holder}"
        case JobState.FAILED:
            how = f"status {job.status}" if job.reason is None else job.reason
            return f"on {job.holder}: {how}"
        case JobState.CANCELLED:
            return job.reason or "no reason is given"


def absence(queue: JobQueue, name: str, declared: Size | None) -> str | None:
    """Why a holder that nobody relieved takes no jobs; None where it takes some, or was relieved.

    A node that is there and well may take none: `absent` alone says that it is gone.
    """
    if queue.duty(name) is not DutyState.ABSENT:
        return None
    if name in queue.holders:
        return "it requests work, and starts no jobs now"
    if declared is None:
        return "it takes no jobs: no cpus and memory_mb are declared for it"
    return "it does not request work"


def _why_queued(
    queue: JobQueue, job: Job, now_s: float, declared: Iterable[tuple[str, Size]]
) -> str:
    said = _overflows(job, now_s) + (f" (before: {job.reason})" if job.reason else "")
    image, there = job.spec.image, _holders(queue, job)
    if image is not None:
        if image in queue.lanes.lacking:
            return f"there is no image {image!r} here yet: see haptera why image:{image}" + said
        heard = [one for one in there if one.asked[1] >= 0]
        if heard and all(one.images is None for one in heard):
            return f"{_NO_IMAGES}: {_list(sorted(one.name for one in heard))}{said}"
        there = [one for one in there if one.images is not None]
    able = [one for one in there if one.capacity.fits(job.spec.size)]
    taking = [one for one in able if one.open and one.name not in queue.duties]
    if not taking:
        large = {one.name for one in able}
        if job.spec.backend is None:
            large |= {name for name, size in declared if size.fits(job.spec.size)}
        if not large:
            return _too_large(job, there) + said
        told = _list(f"{name} {_closed(queue, name)}" for name in sorted(large))
        return f"no node that is large enough takes jobs now: {told}{said}"
    ahead = queue.lanes.ahead(job)
    if ahead:
        jobs = "1 job" if ahead == 1 else f"{ahead} jobs"
        return f"{jobs} of its size ({job.spec.size}) are ahead of it{said}"
    rooms = queue.rooms(job.spec.backend)
    heads = sorted(queue.lanes.heads(job.spec.backend, now_s), key=lambda one: urgency(one, now_s))
    kept = {one.job.id: one for one in reserve(heads, rooms)}
    if job.id in kept:
        place = f"the next place on {kept[job.id].holder} is reserved for it"
        return f"it is next of its size: {place}{said}"
    free = _list(f"{one.name} has {one.free} of {one.capacity} free" for one in taking)
    return f"it asks for {job.spec.size}; {free}{said}"


def _overflows(job: Job, now_s: float) -> str:
    """Where else it may begin, and when."""
    waits_s = {one.backend: job.submitted_s + one.after_s - now_s for one in job.lane.overflow}
    told = (
        f"backend {name}" + (f" in {ceil(left_s)} s" if left_s > 0 else "")
        for name, left_s in waits_s.items()
    )
    return f"; it may begin on {_list(told)} too" if waits_s else ""


def _too_large(job: Job, there: list[Holder]) -> str:
    """What exists, and what is missing."""
    backend = job.spec.backend
    if backend is not None and not there:
        return f"no backend {backend} takes jobs here"
    if not there:
        return "no node takes jobs: none that declares cpus and memory_mb asks for work"
    largest = max(there, key=lambda one: one.capacity)
    sizes = sorted({one.capacity for one in there}, reverse=True)
    missing = _missing(job.spec.size, largest.capacity)
    told = _list(f"{sum(one.capacity == size for one in there)} x {size}" for size in sizes)
    return f"no node is large enough for {job.spec.size}: {missing} missing; there are {told}"


def _missing(size: Size, largest: Size) -> str:
    cpus, memory_mb = size.cpus - largest.cpus, size.memory_mb - largest.memory_mb
    said = [f"{cpus} CPUs"] if cpus > 0 else []
    said += [f"{memory_mb} MB"] if memory_mb > 0 else []
    return " and ".join(said) or "both together"


def _holders(queue: JobQueue, job: Job) -> list[Holder]:
    return [one for one in queue.holders.values() if one.backend == job.spec.backend]


def _closed(queue: JobQueue, name: str) -> str:
    duty = queue.duties.get(name)
    if duty is not None:
        return f"is {queue.duty(name)} ({duty.reason})"
    return "starts no jobs now" if name in queue.holders else "does not request work"


def _stopping(job: Job) -> str:
    return "" if job.stopping is None else f", and is being stopped: {job.stopping}"


def _list(said: Iterable[str]) -> str:
    named = list(said)
    more = f", and {len(named) - NAMES_MAX} more" if len(named) > NAMES_MAX else ""
    return ", ".join(named[:NAMES_MAX]) + more
