"""A job of the queue: what it is to run, what of a node it needs, and where it stands."""

from enum import StrEnum
from math import inf
from typing import Annotated, Final

import msgspec

COMMAND_WORDS_MAX: Final = 256
# All its words together, each with its end, as execve(2) counts them.
COMMAND_BYTES_MAX: Final = 32_768
PRIORITY_MAX: Final = 1_000_000
CPUS_MAX: Final = 65_536
MEMORY_MB_MAX: Final = 1 << 30
TIME_LIMIT_S_MAX: Final = 366 * 86_400
# Of a job in an image: places of its node that are seen inside, and devices.
BINDS_MAX: Final = 32
# Backends that may have a job besides its own.
OVERFLOWS_MAX: Final = 4

Whole = Annotated[int, msgspec.Meta(ge=0)]


class JobState(StrEnum):
    """A job that is `locked` has a holder, and provably nothing of it has run there."""

    QUEUED = "queued"
    LOCKED = "locked"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE: Final = frozenset((JobState.LOCKED, JobState.RUNNING))
ENDED: Final = frozenset((JobState.COMPLETE, JobState.FAILED, JobState.CANCELLED))


class RetryClass(StrEnum):
    """What becomes of a job that ran when its holder was lost: its effects may be there."""

    NEVER = "never"
    LOST = "lost"


class Size(msgspec.Struct, frozen=True, gc=False, order=True):
    """So much of a node.

    >>> Size(4, 8192).fits(Size(2, 1024)), Size(4, 8192) - Size(2, 1024)
    (True, Size(cpus=2, memory_mb=7168))
    """

    cpus: Annotated[int, msgspec.Meta(ge=0, le=CPUS_MAX)]
    memory_mb: Annotated[int, msgspec.Meta(ge=0, le=MEMORY_MB_MAX)]

    def __str__(self) -> str:
        return f"{self.cpus} CPU{'' if self.cpus == 1 else 's'}, {self.memory_mb} MB"

    def __sub__(self, other: "Size") -> "Size":
        return Size(self.cpus - other.cpus, self.memory_mb - other.memory_mb)

    def __add__(self, other: "Size") -> "Size":
        return Size(self.cpus + other.cpus, self.memory_mb + other.memory_mb)

    def fits(self, needed: "Size") -> bool:
        """Whether so much is there."""
        return needed.cpus <= self.cpus and needed.memory_mb <= self.memory_mb


NOTHING: Final = Size(0, 0)


class Bind(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A place of the node that is seen at another one in an image."""

    source: str
    target: str
    writable: bool = False


class Overflow(
    msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """A backend that may begin a job as well, once this has waited for so long."""

    backend: str
    after_s: Annotated[int, msgspec.Meta(ge=0, le=TIME_LIMIT_S_MAX)] = 0


class JobSpec(
    msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """What a job is to run; `backend` names who runs it, None: the cluster's own nodes.

    Backends of `overflow` may begin it instead, once it has waited.

    It runs as `user`, None: as one without rights, or as the agent of its node where that is not
    root. With an `image`, by name or digest, it runs in that, where it begins in `folder`, sees
    `mounts` and `devices` of its node, and can write into `mounts` that are writable, and /tmp.
    """

    # Defaults are not sent: an agent that knows no images is given jobs without one, and reads
    # them as before.

    # Texts are checked where they come in, and not here: what an earlier version let in is to be
    # that job's failure alone.
    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=COMMAND_WORDS_MAX)]
    size: Size
    time_limit_s: Annotated[int, msgspec.Meta(ge=1, le=TIME_LIMIT_S_MAX)] | None = None
    retry: RetryClass = RetryClass.NEVER
    backend: str | None = None
    user: str | None = None
    image: str | None = None
    folder: str | None = None
    mounts: Annotated[tuple[Bind, ...], msgspec.Meta(max_length=BINDS_MAX)] = ()
    devices: Annotated[tuple[str, ...], msgspec.Meta(max_length=BINDS_MAX)] = ()
    overflow: Annotated[tuple[Overflow, ...], msgspec.Meta(max_length=OVERFLOWS_MAX)] = ()


class Lane(msgspec.Struct, frozen=True, gc=False):
    """All jobs that ask for the same of the same backends; in it, priority is exact."""

    backend: str | None
    size: Size
    image: str | None = None
    overflow: tuple[Overflow, ...] = ()

    def after_s(self, backend: str | None) -> float:
        """How long a job waits before a backend may have it; for ever, if it never may.

        >>> lane = Lane(None, Size(1, 64), overflow=(Overflow("slurm", 300),))
        >>> lane.after_s(None), lane.after_s("slurm"), lane.after_s("other")
        (-inf, 300, inf)
        """
        if backend == self.backend:
            return -inf
        return min((one.after_s for one in self.overflow if one.backend == backend), default=inf)


class Job(msgspec.Struct, frozen=True, gc=False):
    """One job. Times are of the wall, in seconds, for people; a status below 0 is a signal's.

    `token` is of its present or last holder, and no other job's, ever; `locks` counts holders.
    `stopping` says why it is being stopped, and `again` that it is to be queued anew then. Backends
    that `declined` it are none that it overflows to any more.
    """

    id: int
    name: str
    owner: str
    spec: JobSpec
    priority: int
    submitted_s: float
    state: JobState = JobState.QUEUED
    array: int | None = None
    index: int | None = None
    key: str | None = None
    token: int | None = None
    holder: str | None = None
    locks: int = 0
    began_s: float | None = None
    ended_s: float | None = None
    status: int | None = None
    reason: str | None = None
    stopping: str | None = None
    again: bool = False
    declined: tuple[str, ...] = ()

    @property
    def lane(self) -> Lane:
        spec = self.spec
        others = tuple(one for one in spec.overflow if one.backend not in self.declined)
        return Lane(spec.backend, spec.size, spec.image, others)

    @property
    def rank(self) -> tuple[int, int]:
        """Its place in its lane: the higher priority first, then who came first."""
        return (-self.priority, self.id)
