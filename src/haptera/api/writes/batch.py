"""Many patches as one request: as few writes as it takes, each patch answered for by itself."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from haptera.api.requests.problems import problem_view, status_of
from haptera.api.writes.patching import Patcher
from haptera.api.writes.planning import Make, Planning
from haptera.model.answers.plan import Plan
from haptera.model.changes import Author, Cause, Change
from haptera.model.errors import DuplicateError, HapteraError, InputError
from haptera.rest.schemas import EntityPatch, Patched
from haptera.runtime.store.optimistic_write import WriteError, write

# After so many the loop has its turn.
PATCHES_AT_ONCE: Final = 200
# How many errors an answer has where nothing is done for them.
ERRORS_MAX: Final = 20
# For these it is some patch that is at fault, not all of them together.
_OF_ONE: Final = (Cause.INVALID, Cause.OPEN_SECRET, Cause.FORBIDDEN)


@dataclass(slots=True)
class PatchBatch:
    """Patches, and what came of them: `problems` by their numbers, `plans` of what they start."""

    planning: Planning
    patcher: Patcher
    patches: Sequence[EntityPatch]
    digest: str | None
    problems: dict[int, HapteraError] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)

    async def settle(self, author: Author | None, *, whole: bool) -> None:
        """Do what can be done, in as few writes as that takes; without an author, say what would.

        Raises:
            InputError: not all of it can be done, and it was to be the `whole` or nothing.
        """
        first: dict[str, int] = {}
        for number, patch in enumerate(self.patches):
            if first.setdefault(patch.entity, number) != number:
                what = f"{patch.entity} is patched twice"
                self.problems[number] = DuplicateError(what, do="put both patches into one")
        await self._settle(sorted(first.values()), author, whole=whole)
        if whole and self.problems:
            raise InputError(list(self._told()))

    async def _settle(self, numbers: Sequence[int], author: Author | None, *, whole: bool) -> None:
        """As `settle`, for some; where all of them together are refused, in halves."""
        found: dict[int, HapteraError] = {}

        async def make() -> tuple[Change, ...]:
            found.clear()
            changes = [change async for change in self._changes(numbers, found)]
            return () if whole and (found or self.problems) else tuple(changes)

        try:
            await self._write(make, author)
        except HapteraError as error:
            if whole:
                raise
            left = [number for number in numbers if number not in found]
            at_fault = isinstance(error, WriteError) and error.cause in _OF_ONE
            if at_fault and len(left) > 1:
                for half in (left[: len(left) // 2], left[len(left) // 2 :]):
                    await self._settle(half, author, whole=False)
            else:
                self.problems |= dict.fromkeys(left, error)
        self.problems |= found

    async def _write(self, make: Make, author: Author | None) -> None:
        desires, plans = self.planning.desires, list[Plan]()
        if author is not None:
            # Many narrow writes are as wide as one.
            besides = sum(one.disrupted_nodes for one in self.plans)
            checked = self.planning.checked(make, self.digest, plans, besides)
            await write(desires, checked, author)
        elif changes := await make():
            plans.append(await desires.preview(changes))
        self.plans += plans[-1:]

    async def _changes(
        self, numbers: Sequence[int], found: dict[int, HapteraError]
    ) -> AsyncIterator[Change]:
        """The changes by these patches now; those that cannot be are `found`."""
        for done, number in enumerate(numbers, 1):
            try:
                changes = self.patcher.changes(self.patches[number])
            except HapteraError as error:
                found[number] = error
            else:
                for change in changes:
                    yield change
            if done % PATCHES_AT_ONCE == 0:
                await asyncio.sleep(0)

    def results(self) -> Iterator[Patched]:
        for number, patch in enumerate(self.patches):
            error = self.problems.get(number)
            if error is not None:
                view = problem_view(error, status_of(error))
                yield Patched(patch.entity, view.status, problem=view)
            else:
                yield Patched(
                    patch.entity, HTTPStatus.OK.value, etag=self.patcher.tag(patch.entity)
                )

    def _told(self) -> Iterator[HapteraError]:
        for number, error in sorted(self.problems.items())[:ERRORS_MAX]:
            yield HapteraError(error.what, where=f"patches[{number}]", do=error.do, code=error.code)

    def shared_status(self) -> HTTPStatus:
        """The status of all problems, if it is one."""
        statuses = {status_of(error) for error in self.problems.values()}
        return statuses.pop() if len(statuses) == 1 else HTTPStatus.CONFLICT
