"""Calls of one part that come close together are answered by one call of its function."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError

# A call waits so long for others to come with it, and again after each of them; but no longer
# in all than this, nor for more than so many.
GATHER_S: Final = 0.02
GATHER_S_MAX: Final = 0.2
TOGETHER_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Gathered:
    """One call that waits; `begin` raises where it is too late to begin it."""

    made: Any
    begin: Callable[[], object]
    answer: "asyncio.Future[Any]"


class Gathering:
    """The calls of one part, for as long as they wait for each other.

    `ask` is the function: of entities and what was made of each it tells what it found of each,
    or what went wrong with it. What it raises went wrong with all.
    """

    def __init__(self, ask: Callable[[Mapping[EntityId, Any]], Awaitable[Any]]) -> None:
        self._ask = ask
        self._waiting: dict[EntityId, Gathered] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._begin_by = 0.0
        self._running: set[asyncio.Task[None]] = set()

    async def answer(self, entity: EntityId, made: Any, begin: Callable[[], object]) -> Any:
        """What is found of this entity, together with others.

        Raises:
            Exception: what went wrong, with it or with all.
        """
        loop = asyncio.get_running_loop()
        if entity in self._waiting:
            self._begin()
        if not self._waiting:
            self._begin_by = loop.time() + GATHER_S_MAX
        one = self._waiting[entity] = Gathered(made, begin, loop.create_future())
        if self._timer is not None:
            self._timer.cancel()
        if len(self._waiting) >= TOGETHER_MAX:
            self._begin()
        else:
            at = min(loop.time() + GATHER_S, self._begin_by)
            self._timer = loop.call_at(at, self._begin)
        return await one.answer

    def _begin(self) -> None:
        taken, self._waiting = self._waiting, {}
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for entity, one in list(taken.items()):
            try:
                one.begin()
            except Exception as late:  # noqa: BLE001  it is its caller's to tell
                if not one.answer.done():
                    one.answer.set_exception(late)
            if one.answer.done():
                del taken[entity]
        if taken:
            task = asyncio.get_running_loop().create_task(self._run(taken))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            for one in taken.values():
                one.answer.add_done_callback(lambda _: _end_unheard(task, taken))

    async def _run(self, taken: Mapping[EntityId, Gathered]) -> None:
        try:
            told = await self._ask({entity: one.made for entity, one in taken.items()})
            found = {entity: _found_of(entity, told) for entity in taken}
        except Exception as error:  # noqa: BLE001  the author's code may raise anything
            found = dict.fromkeys(taken, error)
        for entity, one in taken.items():
            if one.answer.done():
                continue
            if isinstance(result := found[entity], Exception):
                one.answer.set_exception(result)
            else:
                one.answer.set_result(result)


def _found_of(entity: EntityId, told: Any) -> Any:
    """The answer for one entity; no answer at all means that it was done as asked."""
    if told is None:
        return None
    if not isinstance(told, Mapping):
        return HapteraError(f"it returned {type(told).__name__} instead of a mapping of entities")
    return told[entity] if entity in told else HapteraError(f"it returned nothing for {entity}")


def _end_unheard(task: "asyncio.Task[None]", taken: Mapping[EntityId, Gathered]) -> None:
    """Cancel what nobody waits for any more."""
    if all(one.answer.cancelled() for one in taken.values()):
        task.cancel()
