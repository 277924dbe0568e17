"""The directory of one job on its node: what it is, its keeper's notes, and what it has written."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from haptera.core.state.limits import S
from haptera.daemon.queue import remains
from haptera.daemon.queue.bounds import JobBounds
from haptera.daemon.queue.container import runtime_fault
from haptera.keeping import cgroups, job_keeper, keeper
from haptera.keeping.gate import gate_path
from haptera.keeping.home import Home, ServiceRecord
from haptera.model.errors import Code, HapteraError
from haptera.modules.system.container import send
from haptera.queue.job import Whole
from haptera.queue.work import REASON_CHARS_MAX, Assignment
from haptera.runtime.clock import now_ns
from haptera.runtime.identity.private import write_private

# Of so many jobs that ended what they wrote is kept.
ENDED_KEPT_MAX: Final = 256
KEEPER_LOOKED_FOR_EVERY_S: Final = 0.1
# An agent that ended so often in a row while it did the same for a job does it no more. Of an agent
# that is killed again and again by chance, three such ends come about in some hundred kills.
DEATHS_MAX: Final = 5
# The status of what could not be run, as shells have it.
NOT_EXECUTED: Final = 127
# What an agent may die of, and does for a job: a file with a byte for each time it was begun.
ADOPTED: Final = "adopted"
STARTED: Final = "started"

_FOLDER: Final = "queue"
_WORK: Final = "work.json"


class JobNote(msgspec.Struct, frozen=True):
    """What a job is, and when its time limit is over, on the clock of the boot, once it began."""

    work: Assignment
    ends_ns: Whole | None = None
    reported: bool = False


@dataclass(frozen=True, slots=True)
class JobHome:
    """One job under one token; another process of the agent finds it as this one left it."""

    path: Path

    def note(self) -> JobNote | None:
        """What was written down of it; None where nothing was, or not whole."""
        try:
            return msgspec.json.decode((self.path / _WORK).read_bytes(), type=JobNote)
        except (OSError, ValueError):
            return None

    def write(self, note: JobNote) -> None:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self.path / _WORK, msgspec.json.encode(note))

    @contextlib.contextmanager
    def counted(self, what: str) -> Iterator[None]:
        """Do this for the job; that it was begun is on disk for as long, for who dies of it."""
        place = self.path / what
        write_private(place, bytes(self._deaths(what) + 1))
        try:
            yield
        finally:
            place.unlink(missing_ok=True)

    def deadly(self) -> str | None:
        """Why an agent is to leave the job alone; None where it need not."""
        if max(map(self._deaths, (ADOPTED, STARTED))) < DEATHS_MAX:
            return None
        return f"the agent ended {DEATHS_MAX} times while it began this job"

    def _deaths(self, what: str) -> int:
        with contextlib.suppress(OSError):
            return (self.path / what).stat().st_size
        return 0

    def renew(self, until_ns: int) -> None:
        """Let it live until then, and no longer than its time limit says."""
        note = self.note()
        if note is not None and note.ends_ns is not None:
            until_ns = min(until_ns, note.ends_ns)
        write_private(self.path / keeper.LEASE, str(until_ns).encode())

    @property
    def record(self) -> ServiceRecord | None:
        return Home(self.path).record()

    @property
    def began(self) -> bool:
        """Whether it may have run, in this boot or an earlier one."""
        return (self.path / keeper.STATE).exists()

    @property
    def marks(self) -> Mapping[str, str]:
        """What all of its processes have in their environment, and no other has."""
        folder, _, token = str(self.path).rpartition("-")
        return {
            "HAPTERA_JOBS": str(gate_path(Path(folder).parents[1])),
            "HAPTERA_JOB_TOKEN": token,
        }

    async def start(
        self, bounds: JobBounds, environment: Mapping[str, str], gate: int, lease_ns: int
    ) -> str | None:
        """Have it begin, once; why it did not, if so. It holds the gate from then on.

        Raises:
            OSError: its directory, or its cgroup, cannot be written.
        """
        note = self.note()
        assert note is not None
        spec = note.work.spec
        if spec.time_limit_s is not None and note.ends_ns is None:
            note = msgspec.structs.replace(note, ends_ns=now_ns() + spec.time_limit_s * S)
            self.write(note)
        # Written down before it is made: it is to be found again.
        write_private(self.path / keeper.BOUNDS, bounds.text().encode())
        environment = {**environment, **self.marks, **bounds.environment()}
        if bounds.container is not None:
            assert bounds.user is not None
            bounds.container.make(spec, bounds.user, environment, bounds.memory_bytes)
        bounds.make()
        self.renew(lease_ns)
        command, token = bounds.command(spec, self.path.name), str(note.work.token)
        begun = await Home(self.path).keep(token, command, environment, (gate,))
        while begun.status == keeper.ALREADY_RUNS and not self.began:
            # An earlier process of the agent began it, and its keeper is about to write that down.
            await asyncio.sleep(KEEPER_LOOKED_FOR_EVERY_S)
            begun = await Home(self.path).keep(token, command, environment, (gate,))
        if begun.status in (0, keeper.ALREADY_RUNS):
            return None
        return begun.errors or f"its keeper ended with {begun.status}"

    async def ends(self) -> tuple[int | None, str | None]:
        """Wait for its end: its status where anybody saw it, and why, unless it ended well."""
        record = self.record
        if record is None:
            return None, "its node was rebooted while it ran"
        await record.keeper.ends(within_s=None)
        status = _number(self.path / keeper.STATUS)
        if status is None:  # it was killed, or the disk is full
            await remains.end(self.marks)
            await self._leave_cgroup()
        if status == 0:
            return 0, None
        if self._outlived_lease():
            # We ended it, not it itself: that is a loss, and its retry class says what follows.
            return None, "its lease could not be renewed in time"
        if (fault := runtime_fault(self.path)) is not None:
            return NOT_EXECUTED, fault
        return status, self._why_ended()[:REASON_CHARS_MAX]

    async def stop(self, grace_s: float) -> None:
        """TERM to all of it, and KILL after a grace; its keeper kills what it leaves behind.

        In an image TERM is its command's alone, to which the runtime hands it on: twice would be
        once too often.
        """
        record, note = self.record, self.note()
        if record is None:
            return
        if note is not None and note.work.spec.image is not None:
            send(record.service, signal.SIGTERM)
        else:
            remains.send(self.marks, signal.SIGTERM, spare=record.keeper.pid)
        await record.service.ends(grace_s)
        send(record.service, signal.SIGKILL)

    async def _leave_cgroup(self) -> None:
        """Have nothing of the job be left there, for as long as the kernel takes."""
        words = keeper.read_state(str(self.path / keeper.BOUNDS)).get("cgroup", [])
        cgroup = " ".join(words)
        while cgroup and os.path.isdir(cgroup):  # noqa: ASYNC240  of memory
            cgroups.leave(cgroup)
            await asyncio.sleep(remains.LOOK_AGAIN_S)

    def _why_ended(self) -> str:
        note = self.note()
        if (self.path / job_keeper.OUT_OF_MEMORY).exists():
            most = "" if note is None else f" ({note.work.spec.size.memory_mb} MB)"
            return f"it needed more memory than it requested{most}"
        if note is not None and self._expired():
            return f"its time limit of {note.work.spec.time_limit_s} s is over"
        return Home(self.path).how_it_ended() or "it ended, and how is not known"

    def _expired(self) -> bool:
        return (self.path / job_keeper.EXPIRED).exists()

    def _outlived_lease(self) -> bool:
        note = self.note()
        limited = note is not None and note.ends_ns is not None and note.ends_ns <= now_ns()
        return self._expired() and not limited


def home_of(run_dir: Path, work: Assignment) -> JobHome:
    return JobHome(run_dir / _FOLDER / f"{work.job}-{work.token}")


def homes(run_dir: Path) -> Iterator[JobHome]:
    """All that there are, the latest token first."""
    return (JobHome(path) for _, _, path in _places(run_dir))


def output_of(run_dir: Path, job: str) -> Path:
    """Where a job writes, under its last token here.

    Raises:
        HapteraError: nothing of it is here.
    """
    found = next((path for _, key, path in _places(run_dir) if str(key) == job), None)
    if found is None:
        raise HapteraError(f"nothing is left here of job {job}", code=Code.NOT_FOUND)
    return Home(found).output


def forget_oldest(run_dir: Path) -> None:
    """Drop what jobs wrote that were reported as ended, but for the last of them."""
    over = [one for one in homes(run_dir) if (note := one.note()) is None or note.reported]
    for one in over[ENDED_KEPT_MAX:]:
        shutil.rmtree(one.path, ignore_errors=True)


def _places(run_dir: Path) -> list[tuple[int, int, Path]]:
    """Token, job and directory of each, the latest first."""
    found = []
    folder = run_dir / _FOLDER
    for name in os.listdir(folder) if folder.is_dir() else ():
        job, _, token = name.partition("-")
        if job.isdigit() and token.isdigit():
            found.append((int(token), int(job), folder / name))
    return sorted(found, reverse=True)


def _number(place: Path) -> int | None:
    try:
        return int(place.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
