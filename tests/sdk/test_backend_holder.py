"""The holder of a backend's jobs, turn by turn: what it asks the queue, and does in its engine."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from haptera.queue.job import JobSpec, Size
from haptera.queue.work import Assignment, Holding, HoldingPhase, WorkAsked, WorkTold
from haptera.sdk.backends import EngineJob, JobName, JobOrder, JobReturnedError, JobStage
from haptera.sdk.backends.holder import AWAY_S, BackendHolder
from tests.testing.shell_engine import ShellBackend, ShellEngine

NAME = JobName("c0ffee", 7, 70)
ORDER = JobOrder(NAME, ("true",), Size(1, 64), None, {})
WORK = Assignment(7, 70, "j", JobSpec(("true",), Size(1, 64), backend="shell"))


@dataclass
class Queue:
    """A queue that answers as it is told to."""

    told: WorkTold = field(default_factory=WorkTold)
    held: dict[int, int] = field(default_factory=dict)
    asked: list[WorkAsked] = field(default_factory=list)

    def held_by(self, name: str) -> dict[int, int]:
        return self.held

    async def ask(
        self, name: str, capacity: Size, asked: WorkAsked, backend: str | None = None
    ) -> WorkTold:
        self.asked.append(asked)
        return self.told


@pytest.fixture
def engine() -> Iterator[ShellEngine]:
    one = ShellEngine()
    yield one
    one.close()


def holder(backend: ShellBackend, queue: Queue) -> BackendHolder:
    return BackendHolder("shell", NAME.cluster, backend, queue, "boot")


class Away(ShellBackend):
    async def jobs(self) -> list[EngineJob]:
        raise TimeoutError("no answer")


class Full(ShellBackend):
    async def submit(self, order: JobOrder, partition: str) -> None:
        raise JobReturnedError("no room now")


async def test_what_an_engine_has_stays_its_own_while_it_does_not_answer(engine) -> None:
    queue = Queue(WorkTold(work=(WORK,)), {70: 7})
    assert await holder(Away(engine), queue).turn() == AWAY_S
    [asked] = queue.asked
    assert (asked.held, asked.open) == ((Holding(7, 70, HoldingPhase.LOCKED),), False)
    assert engine.there == {}


@pytest.mark.net
async def test_a_job_is_released_once_it_is_noted_and_not_before(engine) -> None:
    backend, queue = ShellBackend(engine), Queue()
    await backend.submit(ORDER, "small")
    kept = holder(backend, queue)
    assert await kept.turn() == 0.0
    assert engine.there["0"].stage() is JobStage.ON_HOLD
    queue.told = WorkTold(noted=(70,))
    await kept.turn()
    assert engine.there["0"].stage() is not JobStage.ON_HOLD
    assert [one.held for one in queue.asked] == [(Holding(7, 70, HoldingPhase.RUNNING),)] * 2


async def test_what_an_engine_refuses_for_now_is_returned_in_its_words(engine) -> None:
    queue = Queue(WorkTold(work=(WORK,)))
    kept = holder(Full(engine), queue)
    await kept.turn()
    queue.told = WorkTold(noted=(70,))
    await kept.turn()
    queue.told = WorkTold()
    await kept.turn()
    returned = Holding(7, 70, HoldingPhase.RETURNED, None, "no room now")
    assert [one.held for one in queue.asked] == [(), (returned,), ()]
