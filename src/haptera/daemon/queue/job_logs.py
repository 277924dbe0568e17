"""Keeps at the parent what jobs wrote on machines that go: as they end, and only the end of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from haptera.model.entity import EntityId
from haptera.queue.job import Job
from haptera.runtime.identity.private import private_directory, write_private
from haptera.runtime.network.peer_messages import Answer, LogAsked, LogPlace, LogTold, Request
from haptera.sdk.boundary import Boundary

# So many are kept, each of LOG_BYTES_MAX at most; the oldest go first.
LOGS_KEPT_MAX: Final = 1_000
# So many wait to be taken; beyond that what a job wrote goes with its machine.
WANTED_MAX: Final = 1_000
ASK_WITHIN_S: Final = 5.0

_log = logging.getLogger(__name__)


class JobLogs:
    """`goes` says of a holder that it is not there for long; `ask` asks its agent."""

    def __init__(
        self,
        directory: Path,
        goes: Callable[[str], bool],
        ask: Callable[[str, Request, float], Awaitable[Answer]],
    ) -> None:
        self._directory = directory
        self._goes = goes
        self._ask = ask
        self._wanted: asyncio.Queue[Job] = asyncio.Queue(WANTED_MAX)

    def want(self, job: Job) -> None:
        """Take what a job wrote that has just ended, if its machine may go."""
        if job.holder is None or not self._goes(job.holder):
            return
        try:
            self._wanted.put_nowait(job)
        except asyncio.QueueFull:
            _log.warning("job %d: what it wrote stays on %s only", job.id, job.holder)

    async def run(self) -> None:
        """Take them, one after the other, until cancelled."""
        while True:
            job = await self._wanted.get()
            with Boundary(f"what job {job.id} wrote"):
                await self._keep(job)

    async def _keep(self, job: Job) -> None:
        assert job.holder is not None
        asked = LogAsked(EntityId("job", str(job.id), None))
        answer = await self._ask(job.holder, asked, ASK_WITHIN_S)
        if not isinstance(answer, LogTold):
            _log.info("job %d: what it wrote is not taken: %s", job.id, answer)
            return
        private_directory(self._directory)
        write_private(self._place(job), answer.text)
        self._forget_oldest()

    def told(self, job: Job, after: LogPlace | None) -> LogTold | None:
        """What was taken of it, unless that is known; None where nothing was."""
        try:
            text = self._place(job).read_bytes()
        except OSError:
            return None
        whole = LogPlace(0, 0)
        known = after is not None and after.file == whole.file
        begin = after.offset if after is not None and known else 0
        return LogTold(text[begin:], LogPlace(whole.file, begin))

    def _place(self, job: Job) -> Path:
        return self._directory / f"{job.id}-{job.token}.log"

    def _forget_oldest(self) -> None:
        kept = sorted(self._directory.glob("*.log"), key=lambda one: one.stat().st_mtime)
        for one in kept[:-LOGS_KEPT_MAX]:
            one.unlink(missing_ok=True)
