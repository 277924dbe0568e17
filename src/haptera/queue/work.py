"""Questions of a holder of jobs to the queue, and answers: an agent over TLS, or a backend."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from haptera.model.walltime import AgeMs
from haptera.queue.duty import DutyState
from haptera.queue.job import JobSpec, Whole

HOLDINGS_MAX: Final = 4_096
# Of why something ended, in characters.
REASON_CHARS_MAX: Final = 500
# So many names and digests of images are sent.
IMAGES_TOLD_MAX: Final = 64
# How long an answer may be held back while there is nothing to tell.
WAIT_MS_MAX: Final = 6_000


class HoldingPhase(StrEnum):
    """`running` asks whether it may begin, or says that it has begun; `returned`: it cannot.

    `refused` is what no later try would change: nothing of it has run, and nothing will. What is
    `stopping` is being stopped already.
    """

    LOCKED = "locked"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"
    RETURNED = "returned"
    REFUSED = "refused"


class JobLimits(StrEnum):
    """What bounds a job: a cgroup of its own, or the limits of each process of it."""

    CGROUP = "cgroup"
    PROCESS = "process"


class Holding(msgspec.Struct, frozen=True, gc=False):
    """One job that a holder has, by its token; a status below 0 is a signal's."""

    job: Whole
    token: Whole
    phase: HoldingPhase
    status: int | None = None
    reason: str | None = None


class WorkAsked(msgspec.Struct, frozen=True, tag_field="op", tag="work"):
    """Asks for work with all that is held; one that is not `open` takes nothing new.

    The answer may be held back for `wait_ms` while there is no work, and nothing to be stopped.
    `number` grows from one asking to the next within a `boot`: what arrives late is not heeded.
    Where the node knows that it is unfit for jobs, `failed` says why, for as long as it is so.
    `images` are those that it has, by names and digests; None: it cannot run jobs in any.
    """

    boot: str
    number: Whole
    held: Annotated[tuple[Holding, ...], msgspec.Meta(max_length=HOLDINGS_MAX)] = ()
    open: bool = True
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=WAIT_MS_MAX)] = 0
    limits: JobLimits | None = None
    failed: str | None = None
    images: Annotated[tuple[str, ...], msgspec.Meta(max_length=IMAGES_TOLD_MAX)] | None = None


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """A job that is the asker's from now on, for as long as its lease is renewed."""

    job: int
    token: int
    name: str
    spec: JobSpec
    array: int | None = None
    index: int | None = None


class StopOrder(msgspec.Struct, frozen=True, gc=False):
    """End this job, or forget it: TERM, and KILL after the grace."""

    token: int
    grace_ms: AgeMs
    reason: str


class WorkTold(msgspec.Struct, frozen=True, tag_field="op", tag="work told"):
    """`noted` are the tokens whose phase is durable now; the lease counts from the asking."""

    work: tuple[Assignment, ...] = ()
    stop: tuple[StopOrder, ...] = ()
    noted: tuple[int, ...] = ()
    lease_ms: AgeMs = 0
    duty: DutyState = DutyState.IDLE

    @property
    def something(self) -> bool:
        """Whether there is something to do."""
        return bool(self.work or self.stop)
