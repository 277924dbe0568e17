"""The jobs that a request asks for, or wants cancelled: some at a time, however many there are."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from haptera.api.backend import JobDesk
from haptera.model.errors import Code, HapteraError
from haptera.model.text import whole_number
from haptera.queue.job import ENDED, Job
from haptera.rest.job_selector import JOB
from haptera.rest.jobs import JOBS_MAX, SomeJobs
from haptera.selectors.selector import Selector
from haptera.selectors.selector_ast import Pattern

# After so many jobs others have their turn: there may be 200,000.
LOOKED_AT_ONCE: Final = 1_000


@dataclass(slots=True)
class FoundJobs:
    """The jobs meant, and the changed ones that are not; `last` is the last change reported."""

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


@dataclass(slots=True)
class _Numbers:
    """Jobs that are counted; the first are remembered."""

    count: int = 0
    ids: list[int] = field(default_factory=list)

    def add(self, key: int) -> None:
        self.count += 1
        if len(self.ids) < JOBS_MAX:
            self.ids.append(key)

    def view(self) -> SomeJobs:
        return SomeJobs(self.count, self.ids)


@dataclass(frozen=True, slots=True)
class Cancelling:
    """The jobs that are `meant`, the oldest first; those that `may` be cancelled are the caller's.

    Each is judged in the turn in which it is cancelled: one that was to be queued and has begun
    meanwhile runs on.
    """

    desk: JobDesk
    meant: Callable[[Job], bool]
    may: Callable[[Job], bool]
    cancelled: _Numbers = field(default_factory=_Numbers)
    ended: _Numbers = field(default_factory=_Numbers)
    forbidden: _Numbers = field(default_factory=_Numbers)
    missing: _Numbers = field(default_factory=_Numbers)
    jobs: list[Job] = field(default_factory=list)

    async def cancel(self, select: Selector, reason: str) -> None:
        """Cancel them.

        Raises:
            HapteraError: none is meant, or none may be; or it cannot be written, and some are
                cancelled: the same again cancels the others.
        """
        named = _named(select)
        keys = list(self.desk.queue.jobs) if named is None else named
        for at in range(0, len(keys), LOOKED_AT_ONCE):
            chosen = [*self._chosen(keys[at : at + LOOKED_AT_ONCE], each=named is not None)]
            if chosen:
                for job in await self.desk.cancel(chosen, reason):
                    self._note(job)
            await asyncio.sleep(0)
        self._check_some(select)

    def _chosen(self, keys: Iterable[int], *, each: bool) -> Iterator[int]:
        """Which of these there are to cancel now; `each` of them is to be there."""
        for key in keys:
            job = self.desk.queue.jobs.get(key)
            if job is None or not self.meant(job):
                if each:
                    self.missing.add(key)
            elif not self.may(job):
                self.forbidden.add(key)
            elif job.state in ENDED:
                self.ended.add(key)
            else:
                yield key

    def _note(self, job: Job) -> None:
        self.cancelled.add(job.id)
        if len(self.jobs) < JOBS_MAX:
            self.jobs.append(job)

    def _check_some(self, select: Selector) -> None:
        if self.cancelled.count or self.ended.count:
            return
        if count := self.forbidden.count:
            what = f"{'1 job belongs' if count == 1 else f'{count} jobs belong'} to others"
            do = "ask them, or use a token of scope admin"
            raise HapteraError(what, where=str(select), do=do, code=Code.FORBIDDEN)
        do = "see which there are: haptera jobs"
        raise HapteraError(f"there is no {select}", do=do, code=Code.SELECTS_NOTHING)


def _named(select: Selector) -> list[int] | None:
    """The numbers of jobs, where a selector names them one by one."""
    choice = select.choice
    if not (isinstance(choice, Pattern) and choice.kind == JOB and choice.names is not None):
        return None
    if not choice.names.plain or choice.nodes is not None:
        return None
    names = (one.name for one in choice.names.members())
    return [number for name in names if (number := whole_number(name)) is not None]
