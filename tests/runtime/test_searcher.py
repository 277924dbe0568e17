"""Workers as real processes: asked, answering, killed, out of memory, and never left behind."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest

from haptera.model.chain import NoChain, Reason, ReasonKind
from haptera.model.effects import SearchPlan
from haptera.model.events import PlanFailed, PlanFound
from haptera.planner.domain.bars import NO_BARS
from haptera.planner.domain.domain import compile_class
from haptera.planner.plan_query import PlanQuery, query_of, search_for, understood
from haptera.planner.planner import plan
from haptera.runtime import clock
from haptera.runtime.processes.forking import PRELOAD, LoopZygote, ZygoteClient, exec_zygote
from haptera.runtime.search.search_process import NICENESS
from haptera.runtime.search.searcher import MEMORY_BYTES_MAX, TARGET, Searcher
from tests.kills.processes import descendants
from tests.lab.rig import until
from tests.planner.shapes import drawn, entangled, in_chain, problem
from tests.runtime.test_process import HOUR_NS, Heard

pytestmark = pytest.mark.net

# Enough for Python and a question, not for what a search comes to.
LITTLE_MEMORY = 48 << 20
NICENESS_MAX = 19


class Rig:
    """A searcher over a real zygote."""

    def __init__(
        self, log_dir: Path, memory_bytes_max: int = MEMORY_BYTES_MAX, target: str = TARGET
    ) -> None:
        self.there_before = {one.pid for one in descendants(os.getpid())}
        self.zygotes: list[ZygoteClient] = []
        self.heard = Heard()
        self.zygote = LoopZygote(self._start)
        self.searcher = Searcher(self.zygote, self.heard, log_dir, memory_bytes_max, target)

    def _start(self) -> ZygoteClient:
        self.zygotes.append(exec_zygote(PRELOAD))
        return self.zygotes[-1]

    def workers(self) -> list[int]:
        below = (one for one in descendants(os.getpid()) if one.pid not in self.there_before)
        return [one.pid for one in below if one.comm == "planner"]

    async def worker(self) -> int:
        """The one that is at work."""
        await until(lambda: bool(self.workers()))
        return self.workers()[0]

    async def gone(self) -> None:
        await until(lambda: not self.workers())

    def close(self) -> None:
        self.searcher.close()
        self.zygote.close()


@asynccontextmanager
async def live(rig: Rig) -> AsyncIterator[Rig]:
    try:
        async with asyncio.timeout(60):
            yield rig
    finally:
        rig.close()


def a_row() -> PlanQuery:
    """A question that is answered at once."""
    domain = compile_class(problem(in_chain(4)))
    return query_of(domain, domain.start({}, {}), {"c3": "on"}, NO_BARS)


def a_tangle() -> PlanQuery:
    """A question that takes longer than any test."""
    random = Random(1)
    domain = compile_class(problem(entangled(40, random)))
    start = domain.start(drawn(domain.problem, random), {})
    return query_of(domain, start, drawn(domain.problem, random), NO_BARS)


def asking(one: PlanQuery, number: int = 1, *, within_ns: int = HOUR_NS) -> SearchPlan:
    return search_for(one, number, clock.now_ns() + within_ns)


def asking_much(number: int = 1, *, within_ns: int = HOUR_NS) -> SearchPlan:
    search = asking(a_tangle(), number, within_ns=within_ns)
    return msgspec.structs.replace(search, states_max=1 << 40)


async def test_a_worker_answers_as_the_planner_does_and_is_gone(tmp_path: Path) -> None:
    async with live(Rig(tmp_path)) as rig:
        one = a_row()
        rig.searcher.search(asking(one, 5))
        (answered,) = await rig.heard.until(1)
        assert isinstance(answered, PlanFound)
        assert answered.search == 5
        assert understood(one, answered.answer) == plan(one.domain, one.start, dict(one.goal))
        await rig.gone()


async def test_a_worker_lets_all_else_go_first(tmp_path: Path) -> None:
    async with live(Rig(tmp_path)) as rig:
        rig.searcher.search(asking_much())
        worker = await rig.worker()
        nice = min(NICENESS_MAX, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
        await until(lambda: os.getpriority(os.PRIO_PROCESS, worker) == nice)


async def test_a_worker_killed_at_work_is_reported_and_the_next_one_answers(tmp_path: Path) -> None:
    async with live(Rig(tmp_path)) as rig:
        rig.searcher.search(asking_much())
        os.kill(await rig.worker(), signal.SIGKILL)
        assert await rig.heard.until(1) == [PlanFailed(1, "killed by SIGKILL")]
        rig.searcher.search(asking(a_row(), 2))
        (answered,) = await rig.heard.until(1)
        assert isinstance(answered, PlanFound)


async def test_a_worker_dies_with_its_zygote(tmp_path: Path) -> None:
    async with live(Rig(tmp_path)) as rig:
        rig.searcher.search(asking_much())
        await rig.worker()
        assert rig.zygotes[0]._pid is not None
        os.kill(rig.zygotes[0]._pid, signal.SIGKILL)
        assert await rig.heard.until(1) == [PlanFailed(1, "killed by SIGKILL")]
        await rig.gone()


async def test_a_worker_past_its_time_is_ended(tmp_path: Path) -> None:
    async with live(Rig(tmp_path)) as rig:
        rig.searcher.search(asking_much(within_ns=0))
        text = "was ended: no answer within 0 s"
        assert await rig.heard.until(1) == [PlanFailed(1, text)]
        await rig.gone()


@pytest.mark.slow
async def test_a_search_that_takes_too_much_memory_gives_up(tmp_path: Path) -> None:
    async with live(Rig(tmp_path, LITTLE_MEMORY)) as rig:
        rig.searcher.search(asking_much())
        text = "gave up: it takes more than 48 MiB of memory"
        reason = Reason(ReasonKind.BUDGET, None, text)
        assert await rig.heard.until(1) == [PlanFound(1, NoChain(reason, 0))]
        await rig.gone()


async def test_a_question_too_large_for_a_frame_is_told_to_be(tmp_path: Path) -> None:
    async with live(Rig(tmp_path)) as rig:
        search = asking(a_row())
        search.attributes["note"] = "x" * (1 << 20)
        rig.searcher.search(search)
        (unsearched,) = await rig.heard.until(1)
        assert isinstance(unsearched, PlanFailed)
        assert unsearched.text.startswith("was not asked: a frame of 10")
        await rig.gone()


async def test_a_log_that_cannot_be_opened_is_why_no_worker_was_started(tmp_path: Path) -> None:
    (tmp_path / "log").touch()

    async with live(Rig(tmp_path / "log")) as rig:
        rig.searcher.search(asking(a_row()))
        (unsearched,) = await rig.heard.until(1)
        assert isinstance(unsearched, PlanFailed)
        assert str(tmp_path / "log") in unsearched.text
