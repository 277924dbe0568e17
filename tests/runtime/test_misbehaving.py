"""Modules that misbehave, each in its own way: it ends, its reason is told, nobody else suffers."""

import asyncio
import resource
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from haptera.model.effects import Call, Start, Stop, Work
from haptera.model.entity import node_id
from haptera.model.events import Answered, Ended, Event, Exited, Failed, Ready, WatchReported
from haptera.runtime import clock
from haptera.runtime.processes.forking import PRELOAD, LoopZygote, exec_zygote
from haptera.runtime.processes.output import LOG_BYTES_MAX
from haptera.runtime.processes.process import Limits, ModuleProcesses
from tests.kills.processes import names_below
from tests.lab.rig import until
from tests.runtime.test_process import HOUR_NS

pytestmark = pytest.mark.net

WAIT_S = 60
# Less within a beat than in life, as the beat is shorter: what a busy machine leaves of a flood is
# to be one still. It may leave a good module without a turn for seconds: only who waits for a sign
# of life to be missed is hasty.
PATIENT = Limits(
    beat_s=0.1,
    beats_missed_max=200,
    frames_unasked_max=200,
    bytes_max=4 << 20,
    output_bytes_max=1 << 16,
)
HASTY = replace(PATIENT, beats_missed_max=50)
WAYS = (
    *("hang", "crash", "flood", "flood_of_bytes", "gigabyte"),
    *("nonsense", "impostor", "thief", "hog", "chatter"),
)
PLACES = {
    "trial": "tests.runtime.forked:module",
    "never_ready": "tests.runtime.never_ready:module",
    **{name: f"tests.runtime.misbehaving:{name}" for name in WAYS},
}


class House:
    """Module processes under one roof, what each said, and waiting for it."""

    def __init__(self, run_dir: Path, limits: Limits, places: Mapping[str, str] = PLACES) -> None:
        self.run_dir = run_dir
        self.events: list[Event] = []
        self._more = asyncio.Event()
        self._calls = 100
        self.zygote = LoopZygote(lambda: exec_zygote(PRELOAD))
        self.processes = ModuleProcesses(
            self.zygote,
            self._hear,
            places=places,
            run_dir=run_dir,
            log_dir=run_dir / "log",
            limits=limits,
        )

    def _hear(self, events: list[Event]) -> None:
        # A flood is cut, but until then it is a flood.
        self.events += [one for one in events if not isinstance(one, WatchReported)]
        self._more.set()

    async def until(self, there: Callable[[Event], bool]) -> Event:
        """The first such event, which is taken."""
        async with asyncio.timeout(WAIT_S):
            while True:
                for event in self.events:
                    if there(event):
                        self.events.remove(event)
                        return event
                self._more.clear()
                await self._more.wait()

    async def start(self, module: str, process: int = 1) -> None:
        self.processes.start(Start(module, process))
        await self.until(
            lambda one: isinstance(one, Ready) and (one.module, one.process) == (module, process)
        )

    def ask(self, module: str, part: str = "look", work: Work = Work.LOOK, process: int = 1) -> int:
        self._calls += 1
        deadline_at = clock.now_ns() + HOUR_NS
        self.processes.call(
            Call(
                self._calls, work, module, part, node_id("n01"), {"power": "on"}, {}, "",
                deadline_at, process=process,
            )
        )  # fmt: skip
        return self._calls

    async def exit(self, module: str, process: int = 1) -> str:
        gone = await self.until(
            lambda one: isinstance(one, Exited) and (one.module, one.process) == (module, process)
        )
        assert isinstance(gone, Exited)
        return gone.text

    async def answer(self, call: int) -> Event:
        return await self.until(
            lambda one: isinstance(one, Answered | Ended | Failed) and one.call == call
        )


@asynccontextmanager
async def live(
    run_dir: Path, limits: Limits = PATIENT, places: Mapping[str, str] = PLACES
) -> AsyncIterator[House]:
    house = House(run_dir, limits, places)
    try:
        yield house
    finally:
        house.processes.close()
        house.zygote.close()


ENDS = {
    "hang": "was ended: it hangs: no sign of life within 5 s; it printed last: "
    "look blocks the event loop at misbehaving.py:32",
    "crash": "killed by SIGSEGV",
    "flood": "was ended: it sent more than was requested",
    "flood_of_bytes": "was ended: it sent more than was requested",
    "gigabyte": "was ended: it sent a malformed frame",
    "nonsense": "was ended: it sent a frame 'reboot' that is not known",
}


@pytest.mark.parametrize("way", ENDS)
async def test_a_module_that_goes_wrong_is_ended_while_another_serves_on(
    way: str, tmp_path: Path
) -> None:
    async with live(tmp_path, HASTY if way == "hang" else PATIENT) as house:
        await house.start("trial")
        await house.start(way)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        house.ask(way)
        ended = asyncio.ensure_future(house.exit(way))
        while not ended.done():
            assert isinstance(await house.answer(house.ask("trial")), Answered)
        assert ended.result() == ENDS[way]
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown_kb < 64 << 10
        assert isinstance(await house.answer(house.ask("trial")), Answered)


async def test_a_module_that_does_not_become_ready_is_ended(tmp_path: Path) -> None:
    async with live(tmp_path, HASTY) as house:
        house.processes.start(Start("never_ready"))
        text = "was ended: it did not become ready within 5 s"
        assert await house.exit("never_ready") == text


async def test_a_module_that_declares_another_is_ended(tmp_path: Path) -> None:
    async with live(tmp_path) as house:
        house.processes.start(Start("impostor"))
        text = "was ended: it declares the name of another module"
        assert await house.exit("impostor") == text


async def test_a_module_answers_no_call_that_another_was_given(tmp_path: Path) -> None:
    async with live(tmp_path) as house:
        await house.start("trial")
        await house.start("thief")
        its_own = await house.answer(house.ask("thief"))
        assert isinstance(its_own, Answered)
        # What it said of others came before its own last word, which the next call follows.
        answer = await house.answer(house.ask("trial"))
        assert isinstance(answer, Answered)
        assert answer.value == "on"
        assert [one for one in house.events if isinstance(one, Answered)] == []


async def test_a_module_that_wants_too_much_memory_gets_none_and_serves_on(tmp_path: Path) -> None:
    async with live(tmp_path) as house:
        await house.start("hog")
        call = house.ask("hog")
        assert await house.answer(call) == Failed(call, "MemoryError")


async def test_of_what_a_module_prints_the_last_is_kept_in_two_bounded_files(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log" / "chatter.log"

    async with live(tmp_path) as house:
        await house.start("chatter")
        house.ask("chatter")
        before = log.with_suffix(".log.1")
        await until(before.exists)
        house.processes.stop(Stop("chatter", 1))
        assert await house.exit("chatter") in ("status 0", "killed by SIGKILL")
        for file in (log, before):
            assert 0 < file.stat().st_size <= LOG_BYTES_MAX


async def test_a_stopped_process_ends_and_one_beside_it_does_not(tmp_path: Path) -> None:
    async with live(tmp_path) as house:
        await house.start("trial", 1)
        await house.start("trial", 2)
        house.processes.stop(Stop("trial", 1))

        assert await house.exit("trial", 1) == "status 0"
        assert isinstance(await house.answer(house.ask("trial", process=2)), Answered)
        call = house.ask("trial", process=1)
        refusal = "module trial does not run"
        assert await house.answer(call) == Failed(call, refusal, refused=True)
        # Also what earlier tests have let go of takes its time to end.
        await until(lambda: names_below().count("module trial") == 1)
