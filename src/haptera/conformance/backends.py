"""Conformance of a backend with the queue's needs, by having its engine run small jobs.

    report = await check_backend(BackendSubject(lambda: Mine(terms), Path("/shared/effects")))

Jobs write into one file, from which what ran is read: nothing depends on the engine's own word.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haptera.conformance.backend_faults import Life
from haptera.conformance.report import CheckFailed, CheckResult, CheckVerdict, Report
from haptera.model.errors import HapteraError
from haptera.queue.job import RetryClass
from haptera.sdk.backends import EngineJob, JobBackend, JobName, JobOrder, JobStage, Partition, Size
from haptera.sdk.boundary import Boundary

SMALL: Final = Size(1, 16)
# Looks after which what is on hold would have begun, if it did.
QUIET_LOOKS: Final = 5
# A job that ends when it is cancelled only.
FOREVER: Final = "exec sleep 3600"


@dataclass(frozen=True, slots=True)
class BackendSubject:
    """A backend to check: how it is made anew, as after a loss of the parent, and where jobs write.

    The file `effects` is one that its jobs can append to. The engine is looked at each `look_s`,
    and has `within_s` for what a check waits for. `seeds` are those of lives with faults.
    """

    make: Callable[[], JobBackend]
    effects: Path
    look_s: float = 0.2
    within_s: float = 120.0
    seeds: Sequence[int] = range(4)


class BackendExam:
    """The state that all checks of a backend share; its jobs have a cluster's tag of their own."""

    def __init__(self, subject: BackendSubject) -> None:
        self.subject = subject
        self.cluster = secrets.token_hex(6)
        self.backend = subject.make()
        self._last = 0

    async def partition(self) -> Partition:
        """The one with the least that a small job fits."""
        able = [one for one in await self.backend.sizes() if one.size.fits(SMALL)]
        if not able:
            raise CheckFailed(f"no partition has nodes with {SMALL}", "name them in `sizes`")
        return min(able, key=lambda one: (one.size, one.name))

    async def submit(self, script: str, cluster: str | None = None) -> JobName:
        """Submit a job that writes its name, then does more."""
        self._last += 1
        name = JobName(cluster or self.cluster, self._last, self._last)
        order = JobOrder(name, self.command(script), SMALL, 600, {"HAPTERA_JOB_NAME": str(name)})
        await self.backend.submit(order, (await self.partition()).name)
        return name

    def command(self, script: str) -> tuple[str, ...]:
        line = f'echo "$HAPTERA_JOB_NAME" >> {self.subject.effects}; {script}'
        return "sh", "-c", line

    async def job(self, name: JobName) -> EngineJob:
        """A job that was submitted: it is listed, once."""
        named = [one for one in await self.backend.jobs() if one.name == name]
        if len(named) != 1:
            do = "list each job from its submission on; submit none twice"
            raise CheckFailed(f"{name} is listed {len(named)} times", do)
        return named[0]

    async def comes(self, name: JobName, stage: JobStage) -> EngineJob:
        """A job once it is at a stage."""
        try:
            async with asyncio.timeout(self.subject.within_s):
                while (job := await self.job(name)).stage is not stage:  # noqa: ASYNC110
                    await asyncio.sleep(self.subject.look_s)
        except TimeoutError:
            what = f"{name} is not {stage} within {self.subject.within_s:g} s"
            raise CheckFailed(what, "see what the engine says of it") from None
        return job

    async def on_hold(self, script: str) -> EngineJob:
        job = await self.job(await self.submit(script))
        if job.stage is not JobStage.ON_HOLD:
            raise CheckFailed(f"a job that was submitted is {job.stage}", "submit it on hold")
        return job

    async def released(self, script: str) -> EngineJob:
        job = await self.on_hold(script)
        await self.backend.release(job.key)
        return job

    async def cleared(self, name: JobName) -> None:
        """Nothing of it is left to run; one that is over already may be refused."""
        with suppress(HapteraError):
            await self.backend.cancel((await self.job(name)).key)

    def begun(self) -> Counter[str]:
        """How often each began, by its name."""
        there = self.subject.effects
        return Counter(there.read_text().split() if there.exists() else ())


async def submits_on_hold(exam: BackendExam) -> str:
    job = await exam.on_hold("true")
    for _ in range(QUIET_LOOKS):
        await asyncio.sleep(exam.subject.look_s)
        if str(job.name) in exam.begun():
            raise CheckFailed("a job began that was not released", "submit it on hold")
    await exam.cleared(job.name)
    return "what is on hold is listed, and does not begin"


async def runs_once_released(exam: BackendExam) -> str:
    job = await exam.released("true")
    ended = await exam.comes(job.name, JobStage.ENDED)
    if (ended.status, exam.begun()[str(job.name)]) != (0, 1):
        began = exam.begun()[str(job.name)]
        what = f"it began {began} times, and ended with {ended.status}"
        raise CheckFailed(what, "run it once, and tell its exit status")
    return "what is released runs once"


async def tells_how_it_ended(exam: BackendExam) -> str:
    for script, status in (("exit 3", 3), ("kill -9 $$", -9)):
        job = await exam.released(script)
        ended = await exam.comes(job.name, JobStage.ENDED)
        if ended.status != status:
            what = f"`{script}` ended with {ended.status}, not {status}"
            raise CheckFailed(what, "tell the exit status; below 0, a signal's")
    return "exit statuses and signals are told"


async def cancels_what_waits(exam: BackendExam) -> str:
    job = await exam.on_hold("true")
    await exam.backend.cancel(job.key)
    for _ in range(QUIET_LOOKS):
        await asyncio.sleep(exam.subject.look_s)
    there = [one for one in await exam.backend.jobs() if one.name == job.name]
    if any(one.stage is not JobStage.ENDED or one.status is not None for one in there):
        do = "let it end without a status, or forget it"
        raise CheckFailed(f"a job that was cancelled on hold is {there[0]}", do)
    if str(job.name) in exam.begun():
        raise CheckFailed("a job began that was cancelled before", "end it for good")
    return "what is cancelled on hold never begins"


async def cancels_what_runs(exam: BackendExam) -> str:
    job = await exam.released(FOREVER)
    async with asyncio.timeout(exam.subject.within_s):
        while str(job.name) not in exam.begun():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(exam.subject.look_s)
    await exam.backend.cancel(job.key)
    ended = await exam.comes(job.name, JobStage.ENDED)
    if ended.status == 0:
        raise CheckFailed("a job that was cancelled ended with 0", "tell a signal, or no status")
    return "what is cancelled ends"


async def remembers_for_others(exam: BackendExam) -> str:
    job = await exam.on_hold("true")
    exam.backend = exam.subject.make()
    if await exam.job(job.name) != job:
        raise CheckFailed("a client made anew sees another job", "keep nothing in the client")
    await exam.cleared(job.name)
    return "a client made anew sees the same"


async def keeps_clusters_apart(exam: BackendExam) -> str:
    names = [await exam.submit("true", tag) for tag in (exam.cluster, secrets.token_hex(6))]
    for name in names:
        await exam.job(name)
    for name in names:
        await exam.cleared(name)
    return "names of several clusters are listed as they are"


async def survives_faults(exam: BackendExam) -> str:
    """Each operation, and each write of the queue, dies or is not answered, by seeds."""
    deaths = 0
    for seed in exam.subject.seeds:
        life = Life(exam.subject.make, seed)
        retry = RetryClass.NEVER if seed % 2 else RetryClass.LOST
        jobs = {life.submit(exam.command(one), SMALL, retry): one for one in _ENDS}
        life.cancel_once_running(*(key for key, one in jobs.items() if one == FOREVER))
        await life.settle(exam.subject.look_s, exam.subject.within_s)
        for key, script in jobs.items():
            job = life.jobs[key]
            began = exam.begun()[str(JobName(life.cluster, key, job.token or 0))]
            if job.status not in _ENDS[script] or began > 1 or (began == 0 and script != FOREVER):
                what = f"`{script}` began {began} times, and ended with {job.status}"
                do = "run no job a second time by yourself, and tell of each what became of it"
                raise CheckFailed(f"seed {seed}: {what} ({job.reason})", do)
        deaths += life.deaths
    return f"{len(exam.subject.seeds)} lives with {deaths} deaths: nothing ran twice or is left"


# Scripts of a life, and how each may end.
_ENDS: Final[dict[str, tuple[int | None, ...]]] = {
    "true": (0,),
    "exit 3": (3,),
    FOREVER: (None, -15, -9),
}
CHECKS: Final[dict[str, Callable[[BackendExam], Awaitable[str]]]] = {
    "submits-on-hold": submits_on_hold,
    "runs-once-released": runs_once_released,
    "tells-how-it-ended": tells_how_it_ended,
    "cancels-what-waits": cancels_what_waits,
    "cancels-what-runs": cancels_what_runs,
    "remembers-for-others": remembers_for_others,
    "keeps-clusters-apart": keeps_clusters_apart,
    "survives-faults": survives_faults,
}


async def check_backend(subject: BackendSubject) -> Report:
    """Check a backend by having its engine run jobs; all of them are over then."""
    exam = BackendExam(subject)
    return Report(None, tuple([await _checked(name, exam) for name in CHECKS]))


async def _checked(name: str, exam: BackendExam) -> CheckResult:
    try:
        with Boundary(name, (CheckFailed,)) as check:
            return CheckResult(name, CheckVerdict.PASSED, await CHECKS[name](exam))
    except CheckFailed as wrong:
        return CheckResult(name, CheckVerdict.FAILED, wrong.seen, wrong.do)
    return CheckResult(
        name, CheckVerdict.FAILED, check.fault or "", "answer, or raise HapteraError"
    )
