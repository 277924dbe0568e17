import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from haptera.keeping.gate import enter, gate_path
from haptera.model.deprecated import UNDECLARED_SETTINGS
from haptera.model.effects import Call, Cancel, Start, Work
from haptera.model.entity import node_id
from haptera.model.events import Answered, Ended, Event, Exited, Failed, Ready
from haptera.modules import BUNDLED, load
from haptera.runtime import clock
from haptera.runtime.processes.forking import PRELOAD, LoopZygote, ZygoteClient, exec_zygote
from haptera.runtime.processes.module_frames import Sampled
from haptera.runtime.processes.process import LIMITS, Limits, ModuleProcesses
from haptera.sdk import Boot, Manifest
from tests.kills.processes import descendants
from tests.runtime import forked, metered

pytestmark = pytest.mark.net

WAIT_S = 60
HOUR_NS = 3_600_000_000_000
READY_MANIFEST = forked.module.manifest()
READY = Ready("trial", 1, "1", READY_MANIFEST)


class Heard:
    """The events of a `ModuleProcesses`, and waiting for them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Event()

    def __call__(self, events: list[Event]) -> None:
        self.events += events
        self._more.set()

    async def until(self, count: int) -> list[Event]:
        """So many events, which are taken."""
        async with asyncio.timeout(WAIT_S):
            while len(self.events) < count:
                self._more.clear()
                await self._more.wait()
        taken, self.events = self.events[:count], self.events[count:]
        return taken


class Rig:
    """Module processes over a real zygote."""

    def __init__(self, run_dir: Path, limits: Limits = LIMITS) -> None:
        self.sampled: list[Sampled] = []
        self.arrived = asyncio.Event()
        self.there_before = {one.pid for one in descendants(os.getpid())}
        self.heard = Heard()
        self.zygotes: list[ZygoteClient] = []
        self.loop_zygote = LoopZygote(self._start)
        self.processes = ModuleProcesses(
            self.loop_zygote,
            self.heard,
            places={
                "trial": "tests.runtime.forked:module",
                "jobs": BUNDLED["jobs"],
                "none": "no.such:module",
                "meter": "tests.runtime.metered:module",
            },
            run_dir=run_dir,
            log_dir=run_dir / "log",
            limits=limits,
            sampled=self._keep,
        )

    def _keep(self, sampled: Sampled) -> None:
        self.sampled.append(sampled)
        self.arrived.set()

    def _start(self) -> ZygoteClient:
        self.zygotes.append(exec_zygote(PRELOAD))
        return self.zygotes[-1]

    async def ready(self, module: str = "trial", manifest: Manifest = READY_MANIFEST) -> None:
        self.processes.start(Start(module))
        assert await self.heard.until(1) == [Ready(module, 1, "1", manifest)]

    def close(self) -> None:
        self.processes.close()
        self.loop_zygote.close()


@asynccontextmanager
async def running(run_dir: Path) -> AsyncIterator[Rig]:
    rig = Rig(run_dir)
    try:
        yield rig
    finally:
        rig.close()


def a_call(id: int, work: Work, part: str, module: str = "trial", **changes: Any) -> Call:
    terms: dict[str, Any] = {
        "attributes": {"power": "on"},
        "values": {},
        "digest": "",
        "deadline_at": clock.now_ns() + HOUR_NS,
        **changes,
    }
    return Call(id, work, module, part, node_id("n01"), **terms)


async def test_a_module_is_started_asked_and_answers(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.ready()
        before = clock.now_ns()
        rig.processes.call(a_call(1, Work.LOOK, "look"))
        (answered,) = await rig.heard.until(1)

        assert isinstance(answered, Answered)
        assert before <= answered.at <= clock.now_ns()
        assert answered == Answered(1, "on", answered.at)


async def test_settings_that_a_module_does_not_declare_are_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as rig:
        await rig.ready()
        rig.processes.start(Start("trial", 2, '{"word": "hunter-2"}'))
        await rig.heard.until(1)
        rig.processes.call(a_call(1, Work.LOOK, "look", process=2))
        await rig.heard.until(1)

    told = [one.getMessage() for one in caplog.records]
    assert told == [f"module trial {UNDECLARED_SETTINGS}"]


async def test_a_step_that_enrols_gets_the_token(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.ready()
        call = a_call(2, Work.STEP, "switch_on", intent="i", enrols=True)
        rig.processes.call(call, Boot("secret", "a certificate", "127.0.0.1"))

        assert await rig.heard.until(1) == [Ended(2)]
        assert (tmp_path / "token").read_text() == "secret"


async def test_a_gate_holds_refuses_and_releases(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.ready()
        rig.processes.call(a_call(1, Work.HOLD, "hold"))
        assert await rig.heard.until(1) == [Failed(1, "2 jobs run", refused=True)]
        rig.processes.call(a_call(2, Work.HOLD, "hold", attributes={"power": "off"}))
        assert await rig.heard.until(1) == [Ended(2)]
        assert (tmp_path / "held").exists()
        rig.processes.call(a_call(3, Work.RELEASE, "release"))
        assert await rig.heard.until(1) == [Ended(3)]
        assert not (tmp_path / "held").exists()


async def test_what_was_held_is_held_though_the_module_is_killed(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:

        async def ask(work: Work) -> Event:
            rig.processes.call(a_call(1, work, work, "jobs"))
            return (await rig.heard.until(1))[0]

        await rig.ready("jobs", load("jobs").manifest())
        assert await ask(Work.RELEASE) == Ended(1)
        job = enter(gate_path(tmp_path))
        assert job is not None
        refused = await ask(Work.HOLD)
        assert isinstance(refused, Failed)
        assert refused.text.startswith(f"1 job runs (locked by {os.getpid()}): ")
        assert refused.refused
        os.close(job)
        assert await ask(Work.HOLD) == Ended(1)
        os.kill(module_pid(rig, "jobs"), signal.SIGKILL)
        assert await rig.heard.until(1) == [Exited("jobs", "killed by SIGKILL", 1)]
        await rig.ready("jobs", load("jobs").manifest())

        assert enter(gate_path(tmp_path)) is None
        assert await ask(Work.HOLD) == Ended(1)
        assert await ask(Work.RELEASE) == Ended(1)
        job = enter(gate_path(tmp_path))
        assert job is not None
        os.close(job)


async def test_calls_may_be_sent_before_the_module_is_ready(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        rig.processes.start(Start("trial"))
        rig.processes.call(a_call(1, Work.LOOK, "look", attributes={"power": "sideways"}))

        assert await rig.heard.until(2) == [
            READY,
            Failed(1, "ValueError: 'sideways' is not a valid Power"),
        ]


async def test_a_call_to_a_module_that_does_not_run_has_no_effect(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        rig.processes.call(a_call(3, Work.LOOK, "look"))
        rig.processes.cancel(Cancel(3, "trial"))

        assert rig.heard.events == [Failed(3, "module trial does not run", refused=True)]


async def test_a_killed_module_is_reported_and_can_be_started_again(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.ready()
        os.kill(module_pid(rig), signal.SIGKILL)

        assert await rig.heard.until(1) == [Exited("trial", "killed by SIGKILL")]
        await rig.ready()


async def test_a_module_that_cannot_be_imported_says_so_on_exit(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        rig.processes.start(Start("none"))

        text = "status 1: ModuleNotFoundError: No module named 'no'"
        assert await rig.heard.until(1) == [Exited("none", text)]


async def test_a_module_that_writes_rubbish_is_killed(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.ready()
        rig.processes.call(a_call(4, Work.LOOK, "look_busy"))

        text = "was ended: it sent a malformed frame"
        assert await rig.heard.until(1) == [Exited("trial", text)]


async def test_modules_come_back_after_their_zygote_was_killed(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.ready()
        assert rig.zygotes[0]._pid is not None
        os.kill(rig.zygotes[0]._pid, signal.SIGKILL)

        assert await rig.heard.until(1) == [Exited("trial", "killed by SIGKILL")]
        await rig.ready()


async def test_a_log_that_cannot_be_opened_is_the_reason_why_nothing_runs(tmp_path: Path) -> None:
    (tmp_path / "log").touch()

    async with running(tmp_path) as rig:
        rig.processes.start(Start("trial"))
        (exited,) = await rig.heard.until(1)
        assert isinstance(exited, Exited)
        assert "was not started" in exited.text
        assert str(tmp_path / "log") in exited.text


def module_pid(rig: Rig, module: str = "trial") -> int:
    """The one process below us that calls itself the module, and was not there before the rig.

    For what earlier tests have let go of takes its time to end.
    """
    (pid,) = (
        one.pid
        for one in descendants(os.getpid())
        if one.comm == f"module {module}" and one.pid not in rig.there_before
    )
    return pid


async def test_what_a_module_measures_is_no_event(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.ready("meter", metered.module.manifest())
        before = clock.now_ns()
        call = a_call(1, Work.SAMPLE, "sensors", "meter", deadline_at=None)
        rig.processes.call(call)
        async with asyncio.timeout(WAIT_S):
            while len(rig.sampled) < 2:
                rig.arrived.clear()
                await rig.arrived.wait()
        rig.processes.cancel(Cancel(1, "meter"))
        rig.processes.call(a_call(2, Work.LOOK, "look", "meter"))
        (answered,) = await rig.heard.until(1)

        assert [one.values for one in rig.sampled[:2]] == [{"temp.inlet": 21.5}] * 2
        assert before <= rig.sampled[0].at_ns < rig.sampled[1].at_ns
        assert isinstance(answered, Failed)
