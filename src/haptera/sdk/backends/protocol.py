"""Another engine that runs jobs of the queue: five operations, and the values that they exchange.

A package brings one as an entry point of the group `haptera.backends`, which names a callable that
makes a `JobBackend` of `BackendTerms`. Whether it is as it must be, `haptera.conformance.backends`
finds out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from haptera.model.errors import HapteraError
from haptera.queue.job import Size
from haptera.sdk.commands import Lesser, no_lesser


@dataclass(frozen=True, slots=True)
class JobName:
    """The name of a job of the queue in its engine; `cluster` is its cluster's tag."""

    cluster: str
    job: int
    token: int

    def __str__(self) -> str:
        return f"haptera-{self.cluster}-{self.job}-{self.token}"

    @classmethod
    def parse(cls, text: str) -> "JobName | None":
        """The name, if it is one.

        >>> JobName.parse("haptera-3f2a-17-102")
        JobName(cluster='3f2a', job=17, token=102)
        """
        found = _NAME.fullmatch(text)
        return None if found is None else cls(found[1], int(found[2]), int(found[3]))


_NAME: Final = re.compile(r"haptera-([0-9a-f]{1,32})-([0-9]{1,18})-([0-9]{1,18})")


class JobStage(StrEnum):
    """Of a job `on hold` nothing runs before it is released; of one `returned`, nothing ever."""

    ON_HOLD = "on hold"
    LIVE = "live"
    ENDED = "ended"
    RETURNED = "returned"


@dataclass(frozen=True, slots=True)
class EngineJob:
    """One job as its engine has it, by the engine's own `key`.

    An exit status below 0 is a signal's; None: nobody knows how it ended, for a `reason`.
    """

    name: JobName
    key: str
    stage: JobStage
    status: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class JobOrder:
    """The command of a job, and how much of one node it has."""

    name: JobName
    command: Sequence[str]
    size: Size
    time_limit_s: int | None
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Partition:
    """Nodes of an engine that are alike, and what a job can have of one."""

    name: str
    size: Size


class JobRefusedError(HapteraError):
    """The engine says no, and would again: nothing of the job has run."""


class JobReturnedError(JobRefusedError):
    """The engine says no now: a later try may succeed, here or elsewhere."""


class JobBackend(Protocol):
    """One engine. Its memory is the engine's own: one made anew knows all that this one knows.

    An operation that has no answer raises another HapteraError, or an OSError: it may have been
    done. It is asked for again once the job's name was looked up.
    """

    async def jobs(self) -> Iterable[EngineJob]:
        """All jobs whose names are `JobName`s; those that ended for as long as it knows them.

        What was submitted before is among them.
        """
        ...

    async def sizes(self) -> Iterable[Partition]:
        """The partitions, each with the most that a job can have there."""
        ...

    async def submit(self, order: JobOrder, partition: str) -> None:
        """Have a job wait on hold.

        The engine must not run it a second time by itself: what becomes of a lost job is the
        queue's to say.

        Raises:
            JobRefusedError: it says no.
        """
        ...

    async def release(self, key: str) -> None:
        """Let a job begin that is on hold; it did not begin before."""
        ...

    async def cancel(self, key: str) -> None:
        """End a job, or have it never begin."""
        ...


@dataclass(frozen=True, slots=True)
class BackendTerms:
    """A backend's settings in a site: a configuration, a folder for output; commands run `lesser`.

    Both are paths, or as the engine reads them.
    """

    conf: str | None = None
    output: str | None = None
    lesser: Lesser = no_lesser
