"""Which jobs a request asks for: the latest, or those that changed since an earlier answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from haptera.api.backend import JobDesk
from haptera.queue.job import Job

# After so many jobs others have their turn: there may be 200,000.
LOOKED_AT_ONCE: Final = 1_000


@dataclass(slots=True)
class FoundJobs:
    """What is meant, and of what changed that which is not; `last` is the last change told of."""

    last: int
    jobs: list[Job] = field(default_factory=list)
    others: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class JobList:
    """At most `limit` jobs, of those that are `meant`."""

    desk: JobDesk
    meant: Callable[[Job], bool]
    limit: int

    async def latest(self, first: int) -> FoundJobs:
        """The latest first, from this number on."""
        # Numbers grow, and a dict keeps its order.
        keys = [key for key in reversed(self.desk.queue.jobs) if key >= first]
        found = FoundJobs(self.desk.news.last)
        async for job in self._each(keys):
            if self.meant(job):
                found.jobs.append(job)
            if len(found.jobs) == self.limit:
                break
        return found

    async def changed(self, since: int, wait_s: int) -> FoundJobs:
        """What changed after this number, in that order; waited for, where nothing has."""
        turn = self.desk.turn
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while wait_s and self.desk.news.last <= since:
                    turn = await self.desk.change(turn)
        changed = self.desk.news.since(since)[: self.limit]
        found = FoundJobs(changed[-1][0] if changed else since)
        async for job in self._each(key for _, key in changed):
            if self.meant(job):
                found.jobs.append(job)
            else:
                found.others.append(job.id)
        return found

    async def _each(self, keys: Iterable[int]) -> AsyncIterator[Job]:
        """The jobs of these numbers that there are still."""
        for at, key in enumerate(keys, start=1):
            if (job := self.desk.queue.jobs.get(key)) is not None:
                yield job
            if at % LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)
