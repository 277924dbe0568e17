"""An engine that runs jobs as processes of this machine, and remembers all of them."""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

from haptera.sdk.backends import EngineJob, JobOrder, JobStage, Partition, Size


@dataclass
class ShellJob:
    order: JobOrder
    process: subprocess.Popen[bytes] | None = None
    over: bool = False

    def begin(self) -> None:
        if self.stage() is JobStage.ON_HOLD:
            known = {"PATH": os.defpath, **self.order.environment}
            self.process = subprocess.Popen(self.order.command, env=known, start_new_session=True)

    def stage(self) -> JobStage:
        if self.over or (self.process is not None and self.process.poll() is not None):
            return JobStage.ENDED
        return JobStage.ON_HOLD if self.process is None else JobStage.LIVE


@dataclass
class ShellEngine:
    """The engine: its own memory outlives all its clients."""

    there: dict[str, ShellJob] = field(default_factory=dict)
    # What was submitted, and is not there yet.
    late: list[tuple[JobOrder, str]] = field(default_factory=list)

    def close(self) -> None:
        for job in self.there.values():
            if job.process is not None:
                job.process.kill()
                job.process.wait()


class ShellBackend:
    """A client of it."""

    def __init__(self, engine: ShellEngine) -> None:
        self.engine = engine

    async def jobs(self) -> list[EngineJob]:
        return list(self.listed())

    def listed(self) -> Iterator[EngineJob]:
        for key, job in self.engine.there.items():
            # In this order: one that ends between the two questions has a status.
            stage = job.stage()
            status = None if job.process is None else job.process.poll()
            yield EngineJob(job.order.name, key, stage, status)

    async def sizes(self) -> list[Partition]:
        return [Partition("large", Size(64, 64_000)), Partition("small", Size(2, 2_000))]

    async def submit(self, order: JobOrder, partition: str) -> None:
        self.engine.there[str(len(self.engine.there))] = ShellJob(order)

    async def release(self, key: str) -> None:
        self.engine.there[key].begin()

    async def cancel(self, key: str) -> None:
        job = self.engine.there[key]
        if job.process is None:
            job.over = True
        elif job.process.poll() is None:
            os.killpg(job.process.pid, signal.SIGTERM)
