"""Jobs on the API, for both ends: submissions, jobs, the queue."""

import re
from typing import Annotated, Final

import msgspec

from haptera.model.declared.meaning import Meaning
from haptera.model.text import Argument, OneLine, Path, User
from haptera.queue.demand import Wanted
from haptera.queue.duty import DutyState
from haptera.queue.job import (
    BINDS_MAX,
    COMMAND_BYTES_MAX,
    COMMAND_WORDS_MAX,
    OVERFLOWS_MAX,
    PRIORITY_MAX,
    Bind,
    JobSpec,
    JobState,
    Overflow,
    RetryClass,
    Size,
)
from haptera.queue.queue import ARRAY_MAX
from haptera.queue.work import JobLimits

# So many one answer lists at most.
JOBS_MAX: Final = 10_000

Priority = Annotated[int, msgspec.Meta(ge=-PRIORITY_MAX, le=PRIORITY_MAX)]


# What people call something of theirs.
Label = Annotated[OneLine, msgspec.Meta(min_length=1, max_length=64)]


# A device of the Container Device Interface: vendor/class=name.
CDI_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_-]*=[A-Za-z0-9][\w.:-]*")
# An image's name, or its digest.
Reference = Annotated[OneLine, msgspec.Meta(min_length=1, max_length=128)]
NodePath = Annotated[Path, msgspec.Meta(min_length=1), Meaning.HOST_PATH]
ImagePath = Annotated[Path, msgspec.Meta(min_length=1)]


class SubmitBind(Bind, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A folder or file of the node that a job sees in its image at `target`, only to read it."""

    source: NodePath
    target: ImagePath


class SubmitOverflow(
    Overflow, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """A backend that may begin a job as well, once it has waited for `after_s`."""

    backend: Label


class SubmitSpec(JobSpec, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """The request of a job; its fields are those of `JobSpec`."""

    command: Annotated[
        tuple[Argument, ...],
        msgspec.Meta(min_length=1, max_length=COMMAND_WORDS_MAX),
        Meaning.COMMAND,
    ]
    backend: Label | None = None
    user: User | None = None
    image: Reference | None = None
    folder: ImagePath | None = None
    mounts: Annotated[tuple[SubmitBind, ...], msgspec.Meta(max_length=BINDS_MAX)] = ()
    devices: Annotated[
        tuple[NodePath, ...], msgspec.Meta(max_length=BINDS_MAX), Meaning.HOST_PATH
    ] = ()
    overflow: Annotated[tuple[SubmitOverflow, ...], msgspec.Meta(max_length=OVERFLOWS_MAX)] = ()

    @property
    def reaches_node(self) -> bool:
        """True if the caller says as whom it runs, or what of the node it opens."""
        return bool(self.user is not None or self.mounts or self.devices)

    def __post_init__(self) -> None:
        if self.image is None and (self.folder or self.mounts or self.devices):
            raise ValueError("folder, mounts and devices are those of an image: name one")
        backends = [self.backend, *(one.backend for one in self.overflow)]
        if self.image is not None and (named := [one for one in backends if one is not None]):
            raise ValueError(f"backend {named[0]} runs no images: omit one of both")
        if len({*backends}) < len(backends):
            what = f"backend {max(backends[1:], key=backends.count)} is named twice"
            raise ValueError(f"{what}: name each once, with one time")
        if self.user is not None and self.overflow:
            what = f"backend {self.overflow[0].backend} runs all jobs as its own user"
            raise ValueError(f"{what}: omit user or overflow")
        binds = (path for one in self.mounts for path in (one.source, one.target))
        for path in (*binds, self.folder or "/"):
            if not path.startswith("/"):
                raise ValueError(f"{path} is no absolute path: begin it with a slash")
        for device in self.devices:
            if not device.startswith("/") and CDI_NAME.fullmatch(device) is None:
                what = f"{device} is no device: write a path, or a name as vendor.com/gpu=0"
                raise ValueError(what)
        size_bytes = sum(len(word.encode()) + 1 for word in self.command)
        if size_bytes > COMMAND_BYTES_MAX:
            what = f"its command has {size_bytes} bytes, more than {COMMAND_BYTES_MAX}"
            raise ValueError(f"{what}: put what is long into a file")


class SubmitBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A job; with a `count`, an array of so many jobs that know their index.

    The same `key` is queued once: who did not hear an answer sends it again.
    """

    spec: SubmitSpec
    name: Label = "job"
    priority: Priority = 0
    count: Annotated[int, msgspec.Meta(ge=1, le=ARRAY_MAX)] | None = None
    key: Label | None = None


class Submitted(msgspec.Struct, frozen=True):
    """The numbers of what was queued, from the first to the last of them."""

    first: int
    last: int


class SpecView(msgspec.Struct, frozen=True):
    """What a job is to run; a list of jobs has no commands, which may be long."""

    size: Size
    command: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    time_limit_s: int | None = None
    retry: RetryClass = RetryClass.NEVER
    backend: str | None = None
    user: str | None = None
    image: str | None = None
    folder: str | None = None
    mounts: tuple[Bind, ...] = ()
    devices: tuple[str, ...] = ()
    overflow: tuple[Overflow, ...] = ()


class JobView(msgspec.Struct, frozen=True):
    """One job, and why it is not done. Times are in seconds since 1970."""

    id: int
    name: str
    owner: str
    spec: SpecView
    priority: int
    state: JobState
    why: str
    submitted_s: int
    array: int | None = None
    index: int | None = None
    holder: str | None = None
    token: int | None = None
    locks: int = 0
    began_s: int | None = None
    ended_s: int | None = None
    status: int | None = None


class JobsView(msgspec.Struct, frozen=True):
    """Jobs without their commands, the latest first, and how many there are in each state.

    What changes after this answer, a request tells that has its `turn` as `since`; of what
    changed and is not what was asked for, if it ever was, the numbers are in `others`.
    """

    counts: dict[str, int]
    turn: str
    others: list[int]
    # Last, for it may be long, and comes in pieces.
    jobs: list[JobView]


class SomeJobs(msgspec.Struct, frozen=True):
    """So many jobs, and the numbers of the first of them, JOBS_MAX at most."""

    count: int = 0
    ids: list[int] = []


class CancelledJobs(msgspec.Struct, frozen=True):
    """What came of cancelling many jobs.

    `cancelled` were, `ended` had ended before; `forbidden` are left, for they belong to others, and
    `missing` were named by a number that no job has. `jobs` are the first of the cancelled ones,
    as they are now.
    """

    cancelled: SomeJobs
    ended: SomeJobs
    forbidden: SomeJobs
    missing: SomeJobs
    # Last, for it may be long, and comes in pieces.
    jobs: list[JobView]


class PriorityBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    priority: Priority


class HolderView(msgspec.Struct, frozen=True):
    """A node, or a backend, that takes jobs, and where it stands; why, unless it takes jobs.

    `limits` are what bounds a job there: its cgroup, or the limits of each of its processes.
    `images` are those that it has for jobs, by names and digests; null: it runs jobs in none.
    """

    name: str
    duty: DutyState
    capacity: Size
    free: Size
    jobs: list[int]
    backend: str | None = None
    reason: str | None = None
    who: str | None = None
    deadline_s: int | None = None
    idle_since_s: int | None = None
    limits: JobLimits | None = None
    images: list[str] | None = None


class LaneView(msgspec.Struct, frozen=True):
    """So many jobs of one size wait, or wait for one backend, or in one image."""

    size: Size
    waiting: int
    backend: str | None = None
    image: str | None = None


class QueueView(msgspec.Struct, frozen=True):
    """Who takes jobs, what waits in which lane, and for what of it there is no place.

    `pools` say by their names where they stand.
    """

    holders: list[HolderView]
    lanes: list[LaneView]
    wanted: list[Wanted]
    pools: dict[str, str] = {}
