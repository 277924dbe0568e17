"""Recorders of serial consoles: one for each node that its power module looks at."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from haptera.modules.console import ConsoleError, ConsoleRecord, record_of
from haptera.sdk import HapteraError, Setup, Target
from haptera.sdk.boundary import Boundary

# One session with what brings a console, recorded until it ends. It raises ConsoleError where none
# begins, HapteraError where a program is missing, and OSError where nothing can be written.
Session = Callable[[ConsoleRecord], Awaitable[None]]

CONSOLES_MAX: Final = 1_000
# Most consoles have one reader: when ours has ended, a person has so long to become it.
AGAIN_S: Final = 10.0
# A node that nobody looked at for so long is not this module's any more.
FORGOTTEN_S: Final = 600.0

_ENDS: Final = (HapteraError, ConsoleError, OSError)

_log = logging.getLogger(__name__)


@asynccontextmanager
async def recording(setup: Setup) -> AsyncIterator["Consoles | None"]:
    """What records consoles for as long as this process serves; None where it is not to."""
    if not setup.settings.record_consoles:
        yield None
        return
    async with asyncio.TaskGroup() as tasks:
        consoles = Consoles(setup.run_dir, tasks)
        try:
            yield consoles
        finally:
            consoles.end()


def keep(target: Target, address: str, session: Session) -> None:
    """From now on the node's console is recorded, if its module records any."""
    if isinstance(target.session, Consoles):
        target.session.keep(target.name, address, session)


def begin(target: Target) -> None:
    """The node's machine has started: if its console is recorded, it is from now, not later."""
    if isinstance(target.session, Consoles):
        target.session.begin(target.name)


class Consoles:
    """A recorder for each node that is looked at, the one looked at last at the end."""

    def __init__(self, folder: Path, tasks: asyncio.TaskGroup) -> None:
        self._folder = folder
        self._tasks = tasks
        self._recorders: dict[str, _Recorder] = {}

    def keep(self, node: str, address: str, session: Session) -> None:
        """Record the node's console, which is at this address, but for the `CONSOLES_MAX`th."""
        now = asyncio.get_running_loop().time()
        recorder = self._recorders.pop(node, None)
        if recorder is not None and recorder.address != address:
            recorder.task.cancel()
            recorder = None
        self._forget(now - FORGOTTEN_S)
        if recorder is None:
            if len(self._recorders) >= CONSOLES_MAX:
                return
            record = ConsoleRecord(record_of(self._folder, node))
            recorder = _Recorder(address, session, record, self._tasks)
        recorder.session, recorder.looked_at = session, now
        self._recorders[node] = recorder

    def begin(self, node: str) -> None:
        """Where no session with the node's console is under way, try now."""
        if (recorder := self._recorders.get(node)) is not None:
            recorder.now.set()

    def end(self) -> None:
        for recorder in self._recorders.values():
            recorder.task.cancel()

    def _forget(self, before: float) -> None:
        while (first := next(iter(self._recorders), None)) is not None:
            if self._recorders[first].looked_at >= before:
                break
            self._recorders.pop(first).task.cancel()


class _Recorder:
    """One node's: its sessions, when it was looked at last, and the task that records."""

    def __init__(
        self, address: str, session: Session, record: ConsoleRecord, tasks: asyncio.TaskGroup
    ) -> None:
        self.address = address
        self.session = session
        self.looked_at = 0.0
        self.now = asyncio.Event()
        self.task = tasks.create_task(self._run(record))

    async def _run(self, record: ConsoleRecord) -> None:
        """One session after the other, until cancelled."""
        told = ""
        while True:
            self.now.clear()
            said = "the session has ended"
            try:
                with Boundary(f"console at {self.address}", _ENDS) as session:
                    await self.session(record)
                said = session.fault or said
            except _ENDS as error:
                said = str(error)
            if said != told:
                _log.warning("console at %s: %s", self.address, said)
            told = said
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await self.now.wait()
