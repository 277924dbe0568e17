"""The suite for backends: nothing in an honest one, and each fault in a wrong one."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from haptera.conformance.backends import CHECKS, BackendSubject, check_backend
from haptera.conformance.report import CheckVerdict, Report
from haptera.model.errors import HapteraError
from haptera.sdk.backends import JobStage
from tests.testing.shell_engine import ShellBackend, ShellEngine

pytestmark = pytest.mark.net

SEEDS = range(6)


@pytest.fixture
def engine() -> Iterator[ShellEngine]:
    one = ShellEngine()
    yield one
    one.close()


def checked(make: Callable[[], ShellBackend], folder, seeds=SEEDS) -> Report:
    return asyncio.run(check_backend(BackendSubject(make, folder / "effects", 0.01, 3, seeds)))


def test_an_honest_backend_passes_all(engine, tmp_path):
    report = checked(lambda: ShellBackend(engine), tmp_path)
    assert [(one.name, one.verdict, one.do) for one in report.checks] == [
        (name, CheckVerdict.PASSED, None) for name in CHECKS
    ]
    deaths = int(report.checks[-1].seen.split()[3])
    assert deaths >= len(SEEDS)  # most lives have several
    assert all(job.stage() is JobStage.ENDED for job in engine.there.values())


class Eager(ShellBackend):
    async def submit(self, order, partition):
        await super().submit(order, partition)
        await self.release(str(len(self.engine.there) - 1))


class Secretive(ShellBackend):
    def listed(self):
        return (one for one in super().listed() if one.stage is not JobStage.ON_HOLD)


class Twofold(ShellBackend):
    async def submit(self, order, partition):
        for _ in range(2):
            await super().submit(order, partition)


class Blurred(ShellBackend):
    def listed(self):
        for one in super().listed():
            yield replace(one, status=1 if one.status else one.status)


class Deaf(ShellBackend):
    async def cancel(self, key):
        pass


class Tardy(ShellBackend):
    """It ends what runs, and lets begin what was cancelled before."""

    async def cancel(self, key):
        if self.engine.there[key].process is None:
            await self.release(key)
        await super().cancel(key)


class Forgetful(ShellBackend):
    """Its memory is its own, not the engine's."""

    def __init__(self, engine):
        super().__init__(engine)
        self.mine = set()

    async def submit(self, order, partition):
        self.mine.add(order.name)
        await super().submit(order, partition)

    def listed(self):
        return (one for one in super().listed() if one.name in self.mine)


class Late(ShellBackend):
    """Each job is there a while after it was submitted, and its answer never comes."""

    async def submit(self, order, partition):
        self.engine.late.append((order, partition))
        raise HapteraError("the engine does not answer")

    async def jobs(self):
        listed = await super().jobs()
        if len(self.engine.late) > 1:  # it was submitted again meanwhile
            for one in self.engine.late:
                await super().submit(*one)
            self.engine.late.clear()
        return listed


class Broken(ShellBackend):
    async def sizes(self):
        raise KeyError("partitions")


@pytest.mark.parametrize(
    ("wrong", "check", "seen"),
    [
        (Eager, "submits-on-hold", "a job that was submitted is "),
        (Secretive, "submits-on-hold", "is listed 0 times"),
        (Twofold, "submits-on-hold", "is listed 2 times"),
        (Blurred, "tells-how-it-ended", "`exit 3` ended with 1, not 3"),
        (Deaf, "cancels-what-waits", "a job that was cancelled on hold is"),
        (Deaf, "cancels-what-runs", "is not ended within"),
        (Tardy, "cancels-what-waits", "a job that was cancelled on hold is"),
        (Forgetful, "remembers-for-others", "is listed 0 times"),
        (Broken, "runs-once-released", "KeyError: 'partitions'"),
    ],
)
def test_each_fault_of_a_backend_is_found(engine, tmp_path, wrong, check, seen):
    report = checked(lambda: wrong(engine), tmp_path, ())
    [one] = [one for one in report.checks if one.name == check]
    assert one.verdict is CheckVerdict.FAILED
    assert seen in one.seen


def test_what_was_submitted_again_for_a_late_answer_runs_once(engine, tmp_path):
    report = checked(lambda: Late(engine), tmp_path)
    assert report.checks[-1].verdict is CheckVerdict.PASSED, report.checks[-1].seen
    names = [str(job.order.name) for job in engine.there.values()]
    assert len(names) > len(set(names))  # some were there twice
