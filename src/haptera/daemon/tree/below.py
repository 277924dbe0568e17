"""What parents below report, taken in at the parent above: state, sessions, and their silence."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import msgspec

from haptera.core.engine import Engine
from haptera.core.sync.peers import LOST_AFTER
from haptera.model.errors import Code, HapteraError, LimitError
from haptera.model.events import Event, Reported, Silenced
from haptera.model.messages import ObservedUpdate
from haptera.rest.schemas import ReportTaken
from haptera.runtime.clock import now_ns
from haptera.runtime.store.sessions import SavedSession

# Parents that one may have below it.
PARENTS_MAX: Final = 1_000
_TENTHS: Final = 10
_S: Final = 1_000_000_000


class SubtreeReport(msgspec.Struct, frozen=True):
    """What a parent keeps: what changed, of which nodes it hears the agent, sessions it made."""

    parent: str
    updates: tuple[ObservedUpdate, ...]
    heard: tuple[str, ...]
    sessions: tuple[SavedSession, ...]


Adopt = Callable[[Sequence[SavedSession]], Awaitable[None]]


class Below:
    """Hands on what parents report; `adopt` takes over the sessions that they made."""

    def __init__(
        self,
        engine: Engine,
        deliver: Callable[[Iterable[Event]], None],
        adopt: Adopt,
        log: int,
    ) -> None:
        self._engine = engine
        self._deliver = deliver
        self._adopt = adopt
        self._log = log
        self._heard_at: dict[str, int] = {}

    async def take(self, body: bytes) -> ReportTaken:
        """Take a report in.

        Raises:
            HapteraError: it is none.
        """
        try:
            report = msgspec.msgpack.decode(body, type=SubtreeReport)
        except msgspec.DecodeError as error:
            raise HapteraError(
                f"this is no report: {error}",
                do="run the same version of haptera on both",
                code=Code.VERSION_MISMATCH,
            ) from None
        if report.parent not in self._heard_at and len(self._heard_at) >= PARENTS_MAX:
            raise LimitError(f"{PARENTS_MAX} parents report already", do="use fewer")
        charge = self._engine.neighbours.charge
        mine = [one for one in report.sessions if report.parent in charge.listed(one.peer)]
        if mine:
            await self._adopt(mine)
        now = self._heard_at[report.parent] = now_ns()
        self._deliver([Reported(report.parent, report.updates, report.heard, now)])
        return ReportTaken(self._log)

    async def watch(self) -> None:
        """Notice, until cancelled, who has not reported for too long."""
        hello_ns = self._engine.side.hello_ns
        while True:
            await asyncio.sleep(hello_ns / _S)
            late = now_ns() - LOST_AFTER * hello_ns // _TENTHS
            for parent in [one for one, at in self._heard_at.items() if at < late]:
                del self._heard_at[parent]
                self._deliver([Silenced(parent)])
