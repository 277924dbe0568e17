"""Recorders of serial consoles: an ipmitool of its own for each node, by serial over LAN."""

import asyncio
import contextlib
import logging
import os
import tty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from haptera.modules.console import ConsoleRecord, record_of
from haptera.modules.ipmi.bmc import IpmiBmc, IpmiError, IpmiSettings
from haptera.sdk import HapteraError, Setup, Target

CONSOLES_MAX: Final = 1_000
# A BMC has one such session: when ours has ended, a person has so long to begin another.
AGAIN_S: Final = 10.0
# A node that nobody looked at for so long is not this module's any more.
FORGOTTEN_S: Final = 600.0
# How long ipmitool has to close its session.
CLOSE_S_MAX: Final = 1.5
READ_BYTES: Final = 4_096

_BEGUN: Final = b"[SOL Session operational"
_WORDS_MAX: Final = 300

_log = logging.getLogger(__name__)


@asynccontextmanager
async def recording(setup: Setup) -> AsyncIterator["Consoles | None"]:
    """What records consoles for as long as this process serves; None where it is not to."""
    settings: IpmiSettings = setup.settings
    if not settings.record_consoles:
        yield None
        return
    async with asyncio.TaskGroup() as tasks:
        consoles = Consoles(setup.run_dir, tasks)
        try:
            yield consoles
        finally:
            consoles.end()


def connect(target: Target) -> IpmiBmc:
    """The BMC of a node; from now on its console is recorded, if consoles are."""
    bmc = IpmiBmc(target)
    if isinstance(target.session, Consoles):
        target.session.keep(target.name, bmc)
    return bmc


class Consoles:
    """A recorder for each node that is looked at, the one looked at last at the end."""

    def __init__(self, folder: Path, tasks: asyncio.TaskGroup) -> None:
        self._folder = folder
        self._tasks = tasks
        self._recorders: dict[str, _Recorder] = {}

    def keep(self, node: str, bmc: IpmiBmc) -> None:
        """Record what this BMC sends of the node's console, but for the `CONSOLES_MAX`th."""
        now = asyncio.get_running_loop().time()
        recorder = self._recorders.pop(node, None)
        if recorder is not None and recorder.bmc.address != bmc.address:
            recorder.task.cancel()
            recorder = None
        self._forget(now - FORGOTTEN_S)
        if recorder is None:
            if len(self._recorders) >= CONSOLES_MAX:
                return
            record = ConsoleRecord(record_of(self._folder, node))
            recorder = _Recorder(bmc, record, self._tasks)
        recorder.bmc, recorder.looked_at = bmc, now
        self._recorders[node] = recorder

    def end(self) -> None:
        for recorder in self._recorders.values():
            recorder.task.cancel()

    def _forget(self, before: float) -> None:
        while (first := next(iter(self._recorders), None)) is not None:
            if self._recorders[first].looked_at >= before:
                break
            self._recorders.pop(first).task.cancel()


class _Recorder:
    """One node's: which BMC it asks, when that was looked at last, and the task that records."""

    def __init__(self, bmc: IpmiBmc, record: ConsoleRecord, tasks: asyncio.TaskGroup) -> None:
        self.bmc = bmc
        self.looked_at = 0.0
        self.task = tasks.create_task(self._run(record))

    async def _run(self, record: ConsoleRecord) -> None:
        """One session after the other, until cancelled."""
        told = ""
        while True:
            try:
                await record_session(self.bmc, record)
                said = "the session has ended"
            except (HapteraError, IpmiError, OSError) as error:
                said = str(error)
            if said != told:
                _log.warning("console at %s: %s", self.bmc.address, said)
            told = said
            await asyncio.sleep(AGAIN_S)


async def record_session(bmc: IpmiBmc, record: ConsoleRecord) -> None:
    """Record one session, until it ends.

    Raises:
        HapteraError: ipmitool is not installed.
        IpmiError: the BMC begins no session.
        OSError: the record cannot be written.
    """
    # ipmitool wants a terminal, and closes its session when that hangs up. Nothing is ever written
    # there: what records does not type.
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", 0) as terminal:
        try:
            tty.setraw(theirs)
            process = await bmc.start("sol", "activate", stdin=theirs, output=theirs)
        finally:
            os.close(theirs)
        sent = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(sent), terminal
        )
        try:
            await _record(bmc, sent, record)
        finally:
            transport.close()
            terminal.close()
            await _ended(process)


async def _record(bmc: IpmiBmc, sent: asyncio.StreamReader, record: ConsoleRecord) -> None:
    words = b""
    while _BEGUN not in words:
        data = await _read(sent)
        words += data
        if not data or len(words) > READ_BYTES:
            said = " ".join(words[:_WORDS_MAX].decode(errors="replace").split()) or "no words"
            raise IpmiError(said)
    record.begin()
    data = words.partition(_BEGUN)[2].partition(b"\n")[2]
    while True:
        record.add(data)
        data = await _read(sent)
        if not data:
            return


async def _read(sent: asyncio.StreamReader) -> bytes:
    """What comes next; nothing where ipmitool has left its terminal."""
    with contextlib.suppress(OSError):
        return await sent.read(READ_BYTES)
    return b""


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait until it has closed its session; where it does not, end it all the same."""
    try:
        async with asyncio.timeout(CLOSE_S_MAX):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
