"""The queue of jobs on a node's side: asks for work, has it run, and reports how it ended.

What it holds is on disk before it is reported, so another process of the agent goes on with it.
A job's keeper lets it live for as long as its lease is renewed, no matter what else is dead.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from haptera.core.state.limits import MS
from haptera.core.state.side import PARENT
from haptera.daemon.confining import grounds_of_agent
from haptera.daemon.queue.bounds import NodeBounds
from haptera.daemon.queue.container import JobContainer
from haptera.daemon.queue.job_home import (
    ADOPTED,
    NOT_EXECUTED,
    STARTED,
    JobHome,
    JobNote,
    forget_oldest,
    home_of,
    homes,
)
from haptera.daemon.queue.job_images import JobImages
from haptera.images.fetch import LostError, NotThereError
from haptera.images.manifest import ImageManifest
from haptera.keeping.gate import JOBS, enter, gate_path
from haptera.model.text import showable
from haptera.queue.work import (
    REASON_CHARS_MAX,
    WAIT_MS_MAX,
    Assignment,
    Holding,
    HoldingPhase,
    StopOrder,
    WorkAsked,
    WorkTold,
)
from haptera.runtime.clock import kernel_boot, now_ns
from haptera.runtime.identity.private import open_unlinked
from haptera.runtime.network.peer_messages import Answer, Request
from haptera.sdk.boundary import Boundary

# Longer than an answer is held back.
ASK_WITHIN_S: Final = 9.0
# After a parent that does not answer, and while this node takes no jobs.
ASK_AGAIN_S: Final = 1.0
# So long before its lease ends a job is killed: killing takes time, and clocks drift.
LEASE_MARGIN_MS: Final = 2_000
# Beside the gate: while it is there this node has failed, for the reason in it.
FAILED: Final = "failed"
PATH_DEFAULT: Final = "/usr/local/bin:/usr/bin:/bin"

_log = logging.getLogger(__name__)

Ask = Callable[[str, Request, float], Awaitable[Answer]]


@dataclass(slots=True)
class _Run:
    """One job that this node holds; `noted` says that the parent knows its phase.

    `followed`: its end is waited for, or it is being begun. It is locked while its image is staged.
    """

    work: Assignment
    home: JobHome
    phase: HoldingPhase
    noted: bool = False
    followed: bool = False
    gate: int | None = None
    status: int | None = None
    reason: str | None = None
    image: tuple[Path, ImageManifest] | None = None

    def holding(self) -> Holding:
        return Holding(self.work.job, self.work.token, self.phase, self.status, self.reason)

    def leave_gate(self) -> None:
        if self.gate is not None:
            os.close(self.gate)
            self.gate = None


class AgentQueue:
    """`takes` says whether this node takes jobs at all; `ask` asks the parent."""

    def __init__(self, ask: Ask, takes: Callable[[], bool], run_dir: Path, node: str) -> None:
        self._ask = ask
        self._takes = takes
        self._run_dir = run_dir.absolute()
        self._node = node
        self._runs: dict[int, _Run] = {}
        self._boot = kernel_boot()
        self._bounds = NodeBounds.of_this_node(grounds_of_agent(self._run_dir, ()).hidden)
        self._images = JobImages(self._run_dir)
        self._wake = asyncio.Event()
        self._tasks: asyncio.TaskGroup

    async def run(self) -> None:
        """Ask for work and do it, until cancelled; jobs live on."""
        async with asyncio.TaskGroup() as self._tasks:
            for home in homes(self._run_dir):
                with Boundary(f"job {home.path.name}"):
                    self._adopt(home)
            while True:
                if not self._runs and not self._takes():
                    await asyncio.sleep(ASK_AGAIN_S)
                    continue
                with Boundary("the queue of jobs") as turn:
                    await self._turn()
                if turn.error is not None:
                    await asyncio.sleep(ASK_AGAIN_S)

    @contextlib.contextmanager
    def _served(self, run: _Run) -> Iterator[None]:
        """What goes wrong with a job is its end, and that of no other."""
        with Boundary(f"job {run.work.job}") as job:
            yield
        if job.fault is not None:
            self._over(run, HoldingPhase.ENDED, NOT_EXECUTED, job.fault)

    def _adopt(self, home: JobHome) -> None:
        """Go on with what an earlier process of this agent held."""
        note = home.note()
        if note is None or note.reported:
            return
        run = self._runs[note.work.token] = _Run(note.work, home, HoldingPhase.RUNNING)
        if (reason := home.deadly()) is not None:
            _log.error("job %d is set aside: %s", run.work.job, reason)
            self._over(run, HoldingPhase.ENDED, NOT_EXECUTED, reason)
            return
        with self._served(run), home.counted(ADOPTED):
            if home.began:
                run.followed = True
                self._tasks.create_task(self._follow(run))
            else:
                self._make_ready(run)

    async def _turn(self) -> None:
        """Ask once, and follow the answer; something that ends meanwhile is reported at once."""
        self._wake.clear()
        runs = self._runs.values()
        quiet = all(one.noted or one.phase is HoldingPhase.LOCKED for one in runs)
        asked_ns = now_ns()
        asked = WorkAsked(
            boot=self._boot,
            number=asked_ns,
            held=tuple(one.holding() for one in runs),
            open=self._takes() and gate_path(self._run_dir).exists(),
            wait_ms=WAIT_MS_MAX if quiet else 0,
            limits=self._bounds.limits,
            failed=self._failed(),
            images=self._images.known,
        )
        answer = await self._answer(asked, quiet=quiet)
        if isinstance(answer, WorkTold):
            self._take(asked, answer, asked_ns + answer.lease_ms * MS)
        elif answer is not None:
            _log.warning("no work is assigned: %s", getattr(answer, "text", "answered otherwise"))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), ASK_AGAIN_S)

    def _failed(self) -> str | None:
        """Why this node takes no jobs, where a program on it has written that down."""
        try:
            with open_unlinked(self._run_dir / JOBS / FAILED) as file:
                words = file.read(REASON_CHARS_MAX)
        except OSError:
            return None
        return showable(words.decode(errors="replace"), REASON_CHARS_MAX) or "it did not say why"

    async def _answer(self, asked: WorkAsked, *, quiet: bool) -> Answer | None:
        """What the parent answers; None where there is news of one's own first."""
        asking = asyncio.ensure_future(self._ask(PARENT, asked, ASK_WITHIN_S))
        waking = asyncio.ensure_future(self._wake.wait())
        try:
            either = {asking, waking} if quiet else {asking}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return await asking if asking.done() else None
        finally:
            asking.cancel()
            waking.cancel()

    def _take(self, asked: WorkAsked, told: WorkTold, lease_ns: int) -> None:
        """Follow the answer; changes since the question are not noted yet."""
        lease_ns -= LEASE_MARGIN_MS * MS
        noted = {one.token: one.phase for one in asked.held if one.token in told.noted}
        stopped = {one.token for one in told.stop}
        for run in list(self._runs.values()):
            token = run.work.token
            if run.phase in (HoldingPhase.ENDED, HoldingPhase.RETURNED):
                if noted.get(token) is run.phase:
                    self._forget(run)
                continue
            if run.home.began and told.lease_ms and token not in stopped:
                # Once more with the next answer; its lease is over before it is given to another.
                with Boundary(f"the lease of job {run.work.job}"):
                    run.home.renew(lease_ns)
            if noted.get(token) is run.phase and not run.noted:
                run.noted = True
                if not run.followed:
                    run.followed = True
                    self._tasks.create_task(self._begin(run, lease_ns))
        for order in told.stop:
            self._stop(order)
        for work in told.work:
            self._accept(work)

    def _accept(self, work: Assignment) -> None:
        """A job is this node's: on disk before it is reported."""
        if work.token in self._runs:
            return
        home = home_of(self._run_dir, work)
        with Boundary(f"the directory of job {work.job}") as made:
            home.write(JobNote(work))
        if made.error is not None:
            return  # It is given again, until its lease is over.
        run = self._runs[work.token] = _Run(work, home, HoldingPhase.RUNNING)
        with self._served(run):
            self._make_ready(run)

    def _make_ready(self, run: _Run) -> None:
        """Have its image here; then it may begin."""
        if run.work.spec.image is None:
            self._go_in(run)
        else:
            run.phase = HoldingPhase.LOCKED
            self._tasks.create_task(self._stage(run, run.work.spec.image))

    async def _stage(self, run: _Run, image: str) -> None:
        """Nothing of it has run yet: what fails for want of something may be tried elsewhere."""
        with self._served(run):
            try:
                root, manifest = await self._images.stage(
                    image, lambda: run.phase is HoldingPhase.LOCKED
                )
            except (NotThereError, LostError, OSError) as error:
                if run.phase is HoldingPhase.LOCKED:
                    self._over(run, HoldingPhase.RETURNED, None, f"image {image}: {error}")
                return
            if run.phase is HoldingPhase.LOCKED:
                run.image, run.phase = (root.path, manifest), HoldingPhase.RUNNING
                self._go_in(run)
                self._wake.set()

    def _go_in(self, run: _Run) -> None:
        """Hold the node's gate, before the parent hears that the job may begin."""
        try:
            run.gate = enter(gate_path(self._run_dir))
        except OSError as error:
            self._over(run, HoldingPhase.RETURNED, None, f"the gate of jobs: {error.strerror}")
        else:
            if run.gate is None:
                closed = f"{self._node} starts no jobs"
                self._over(run, HoldingPhase.RETURNED, None, closed)

    async def _begin(self, run: _Run, lease_ns: int) -> None:
        with self._served(run):
            if run.home.began:
                # An earlier process of this agent had started its keeper.
                run.leave_gate()
                await self._follow(run)
            elif now_ns() >= lease_ns:
                # The answer is an old one: this node was suspended, and another may have the job.
                late = "its lease was over before it began"
                self._over(run, HoldingPhase.RETURNED, None, late)
            elif (fault := await self._started(run, lease_ns)) is not None:
                self._over(run, HoldingPhase.ENDED, NOT_EXECUTED, fault)
            else:
                await self._follow(run)

    async def _started(self, run: _Run, lease_ns: int) -> str | None:
        """Start its keeper, which holds the gate from then on; why there is none, if so."""
        assert run.gate is not None
        gate, run.gate = run.gate, None
        try:
            home, container = run.home.path, None
            if run.image is not None:
                container = JobContainer.of(home, *run.image)
            bounds = self._bounds.of(run.work.spec, home, container)
            with run.home.counted(STARTED):
                return await run.home.start(bounds, self._environment(run.work), gate, lease_ns)
        finally:
            os.close(gate)

    async def _follow(self, run: _Run) -> None:
        with self._served(run):
            status, reason = await run.home.ends()
            self._over(run, HoldingPhase.ENDED, status, reason)

    def _stop(self, order: StopOrder) -> None:
        run = self._runs.get(order.token)
        if run is None or run.phase not in (HoldingPhase.LOCKED, HoldingPhase.RUNNING):
            return
        if not run.noted and not run.home.began:
            self._over(run, HoldingPhase.ENDED, None, order.reason)
            return
        run.phase, run.noted = HoldingPhase.STOPPING, True
        self._tasks.create_task(self._end(run, order.grace_ms / 1_000))

    async def _end(self, run: _Run, grace_s: float) -> None:
        with Boundary(f"the stop of job {run.work.job}"):
            await run.home.stop(grace_s)

    def _over(self, run: _Run, phase: HoldingPhase, status: int | None, reason: str | None) -> None:
        """It is over; that is reported until the parent has noted it."""
        said = None if reason is None else showable(reason, REASON_CHARS_MAX)
        run.phase, run.noted, run.status, run.reason = phase, False, status, said
        run.leave_gate()
        self._wake.set()

    def _forget(self, run: _Run) -> None:
        """Its end is known; what it wrote stays for a while."""
        del self._runs[run.work.token]
        with Boundary(f"the last note of job {run.work.job}"):
            note = run.home.note() or JobNote(run.work)
            run.home.write(replace(note, reported=True))
            forget_oldest(self._run_dir)
        if run.work.spec.image is not None:
            self._tasks.create_task(self._drop_images())

    async def _drop_images(self) -> None:
        """Forget images that no job here is in, but for a few."""

        def used() -> list[str]:
            return [one.image[1].digest for one in self._runs.values() if one.image is not None]

        with Boundary("the images of jobs"):
            await self._images.drop_unused(used)

    def _environment(self, work: Assignment) -> Mapping[str, str]:
        known = {
            "PATH": os.environ.get("PATH", PATH_DEFAULT),
            "HAPTERA_NODE": self._node,
            "HAPTERA_JOB": work.job,
            "HAPTERA_JOB_NAME": work.name,
            "HAPTERA_JOB_ARRAY": work.array,
            "HAPTERA_JOB_INDEX": work.index,
        }
        return {name: str(value) for name, value in known.items() if value is not None}
