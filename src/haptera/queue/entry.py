"""What goes into the queue and comes out of it: submissions, holders, what is stored."""

from dataclasses import dataclass, field

from haptera.queue.job import NOTHING, Job, JobSpec, Size
from haptera.queue.work import JobLimits


@dataclass(frozen=True, slots=True)
class Moment:
    """Now: by the clock that leases go by, and by the wall."""

    ns: int
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Jobs to be queued, all alike; the same `key` of the same owner is queued once."""

    owner: str
    name: str
    spec: JobSpec
    priority: int = 0
    count: int | None = None
    key: str | None = None


@dataclass(slots=True)
class QueueChanges:
    """What is not written yet; of `arrays_gone` no job is left."""

    jobs: dict[int, Job | None] = field(default_factory=dict)
    arrays_gone: set[int] = field(default_factory=set)
    token_last: int = 0
    job_last: int = 0

    def __bool__(self) -> bool:
        return bool(self.jobs)


@dataclass(frozen=True, slots=True)
class StoredQueue:
    """The queue as it was written last."""

    jobs: tuple[Job, ...] = ()
    job_last: int = 0
    token_last: int = 0


@dataclass(slots=True)
class Holder:
    """A holder of jobs: `held` is job by token; until `lease_ns` nobody else gets these.

    `images` are those that it has; None: it runs jobs in none.
    """

    name: str
    backend: str | None = None
    capacity: Size = NOTHING
    free: Size = NOTHING
    open: bool = False
    limits: JobLimits | None = None
    images: frozenset[str] | None = None
    lease_ns: int = 0
    asked: tuple[str, int] = ("", -1)
    idle_since_s: float | None = None
    held: dict[int, int] = field(default_factory=dict)
