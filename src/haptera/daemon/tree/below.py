"""What parents below report, taken in at the parent above: state, sessions, and their silence."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Final

import msgspec

from haptera.core.engine import Engine
from haptera.core.sync.peers import LOST_AFTER
from haptera.model.errors import Code, HapteraError, LimitError
from haptera.model.events import Event, Reported, Silenced
from haptera.model.messages import ObservedUpdate, ReportNotes
from haptera.rest.schemas import ReportTaken
from haptera.runtime.clock import now_ns
from haptera.runtime.store.sessions import SavedSession

# Parents that one may have below it.
PARENTS_MAX: Final = 1_000
_TENTHS: Final = 10
_S: Final = 1_000_000_000


class SubtreeReport(msgspec.Struct, frozen=True):
    """What a parent reports, as `Reported` has it, and the sessions that were made there."""

    parent: str
    updates: tuple[ObservedUpdate, ...]
    nodes: Mapping[str, bool] | None
    sessions: tuple[SavedSession, ...]
    notes: ReportNotes | None = None


Adopt = Callable[[Sequence[SavedSession]], Awaitable[None]]


class Below:
    """Hands on what parents report; `adopt` takes over the sessions that they made.

    A parent that is heard for the first time, or was silent for too long, is answered with another
    log than before: it has to tell all. `first_log` is what these are counted from.
    """

    def __init__(
        self,
        engine: Engine,
        deliver: Callable[[Iterable[Event]], None],
        adopt: Adopt,
        first_log: int,
    ) -> None:
        self._engine = engine
        self._deliver = deliver
        self._adopt = adopt
        self._logs = count(first_log)
        # By parent: its log, and when it was last heard.
        self._heard: dict[str, tuple[int, int]] = {}

    async def take(self, body: bytes) -> ReportTaken:
        """Take a report in.

        Raises:
            HapteraError: it is none.
        """
        try:
            report = msgspec.msgpack.decode(body, type=SubtreeReport)
        except msgspec.DecodeError as error:
            raise HapteraError(
                f"this is not a report: {error}",
                do="run the same version of haptera on both",
                code=Code.VERSION_MISMATCH,
            ) from None
        parent = report.parent
        if parent not in self._heard and len(self._heard) >= PARENTS_MAX:
            raise LimitError(f"{PARENTS_MAX} parents report already", do="use fewer")
        charge = self._engine.neighbours.charge
        mine = [one for one in report.sessions if charge.leads(parent, one.peer)]
        if mine:
            await self._adopt(mine)
        now = now_ns()
        if parent in self._heard:
            log, _ = self._heard[parent]
        else:
            log = next(self._logs)
        self._heard[parent] = log, now
        self._deliver([Reported(parent, report.updates, report.nodes, now, report.notes)])
        # What this report asks for is answered with the next one.
        return ReportTaken(log, msgspec.msgpack.encode(self._engine.requests.answer(parent, now)))

    def check_reach(self, node: str) -> None:
        """What is asked of a node that another parent keeps goes down by what that one reports.

        Raises:
            HapteraError: it does not report.
        """
        if (parent := self._engine.requests.out_of_reach(node)) is not None:
            raise HapteraError(
                f"{parent}, by which {node} is reached, does not report on it",
                do=f"see whether {parent} runs, or ask the parent that keeps {node} now",
                code=Code.CONFLICT,
            )

    async def watch(self) -> None:
        """Notice, until cancelled, who has not reported for too long."""
        hello_ns = self._engine.side.hello_ns
        while True:
            await asyncio.sleep(hello_ns / _S)
            late = now_ns() - LOST_AFTER * hello_ns // _TENTHS
            for parent in [one for one, (_, at) in self._heard.items() if at < late]:
                del self._heard[parent]
                self._deliver([Silenced(parent)])
