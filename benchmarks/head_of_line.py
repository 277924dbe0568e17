"""How long small jobs wait behind a large one that has no room yet: here, and on Slurm.

    unshare -n python -m benchmarks.head_of_line [SECONDS]          needs root, and Slurm

Four nodes of one CPU are idle, two of four CPUs each have a job of SECONDS (20). A job for four
CPUs comes first, with the highest priority; 50 jobs of a fifth of a second for one CPU come
behind. On the installed Slurm with one partition under both of its schedulers, and with a
partition for each size; and in a lab. Jobs write down when they begin; nothing else is believed.
"""

import asyncio
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.convergence import lab, nodes_of, ready
from haptera.cli.lab import AGENT, HELLO_MS, PARENT
from haptera.client import calls
from haptera.lab.layout import LabConfig, Places, octet, open_cluster
from haptera.queue.job import Size
from haptera.rest.jobs import SubmitBody, SubmitSpec
from haptera.rest.schemas import SiteBody, SiteFile
from haptera.runtime import clock
from haptera.site.model.site import parse_site

ROOT: Final = Path(__file__).resolve().parents[1]
SIZES: Final = ("small=4:1:512", "large=2:4:4096")
SMALL, LARGE = Size(1, 64), Size(4, 64)
SMALL_JOBS: Final = 50
SMALL_S: Final = 0.2
POLL_S: Final = 0.02
MODULES: Final = ("jobs", "labnode", "service")
SITE: Final = """\
cluster: line
nodes:
  small[1-4]: {platform: labnode, address: "127.{x}.1.{index}", bmc: "127.{x}.2.{index}:4280", cpus: "1", memory_mb: "512"}
  large[1-2]: {platform: labnode, address: "127.{x}.1.{index}", bmc: "127.{x}.2.{index}:4280", cpus: "4", memory_mb: "4096"}
desired:
  small[1-4],large[1-2]: {power: on, agent: up}
"""  # noqa: E501  a site file's own lines

# Queues a command under a name: how often, of which size, with which priority.
Submit = Callable[[str, str, int, Size, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Ran:
    """Seconds from its submission: to the first small job, the last one, and to the large one."""

    first: float
    last: float
    head: float


async def trace(directory: Path, submit: Submit, busy_s: float) -> Ran:
    """Run the trace; what begins is read from the log that the jobs write."""
    log = directory / "began"
    log.touch()

    def begun(name: str) -> list[float]:
        rows = (line.split() for line in log.read_text().splitlines())
        return sorted(int(row[1]) / 1e9 for row in rows if row[0] == name)

    async def until(name: str, count: int) -> None:
        while len(begun(name)) < count:  # noqa: ASYNC110  a file tells nobody that it was written
            await asyncio.sleep(POLL_S)

    def command(name: str, seconds: float) -> str:
        return f'echo "{name} $(date +%s%N)" >>{log}; sleep {seconds}'

    await submit("busy", command("busy", busy_s), 2, LARGE, 0)
    await until("busy", 2)
    head_at = clock.wall_s()
    await submit("head", command("head", 1), 1, LARGE, 1_000)
    small_at = clock.wall_s()
    await submit("small", command("small", SMALL_S), SMALL_JOBS, SMALL, 0)
    await until("small", SMALL_JOBS)
    await until("head", 1)
    small = begun("small")
    return Ran(small[0] - small_at, small[-1] - small_at, begun("head")[0] - head_at)


@asynccontextmanager
async def on_slurm(directory: Path, layout: str, scheduler: str) -> AsyncIterator[Submit]:
    """A Slurm of our own."""
    own = {"LAYOUT": layout, "SCHEDULER": scheduler, "SLURM_CONF": str(directory / "slurm.conf")}
    environment = {**os.environ, **own}
    script = directory / "job.sh"
    script.write_text('#!/bin/sh\nexec "$@"\n')
    tool = str(ROOT / "tools/private-slurm")
    do([tool, "start", str(directory), *SIZES], environment)

    async def submit(name: str, command: str, count: int, size: Size, priority: int) -> None:
        partition = "all" if layout == "one" else name_of(size)
        for _ in range(count):
            order = [
                *("sbatch", f"--partition={partition}", f"--cpus-per-task={size.cpus}"),
                *(f"--mem={size.memory_mb}", "--output=/dev/null", "--chdir=/"),
                *([f"--priority={4_000_000_000}"] if priority else []),
                *(str(script), "sh", "-c", command),
            ]
            await asyncio.to_thread(do, order, environment)

    try:
        yield submit
    finally:
        do([tool, "stop", str(directory)], environment)


@asynccontextmanager
async def here(directory: Path) -> AsyncIterator[Submit]:
    """A lab's nodes."""
    cluster = open_cluster(Places(directory))
    constants = {"x": str(octet(cluster)), "python": sys.executable, "site": str(directory)}
    nodes = nodes_of(parse_site([SiteFile("site.yaml", SITE)], constants))
    parent = {
        "name": "line",
        "modules": list(MODULES),
        "hello_ms": HELLO_MS,
        "constants": constants,
    }
    config = LabConfig(
        directory, cluster, nodes, parent=PARENT, agent=AGENT, parent_arguments=parent
    )
    async with lab(config):
        client = await ready(config.places)
        body = SiteBody([SiteFile("site.yaml", SITE)], constants)
        await asyncio.to_thread(client.ask, calls.apply(body))

        async def submit(name: str, command: str, count: int, size: Size, priority: int) -> None:
            spec = SubmitSpec(("sh", "-c", command), size, user=pwd.getpwuid(os.geteuid()).pw_name)
            body = SubmitBody(spec, name, priority, count)
            await asyncio.to_thread(client.ask, calls.submit(body))

        yield submit


def do(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def name_of(size: Size) -> str:
    return "small" if size == SMALL else "large"


@asynccontextmanager
async def folder() -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


async def main(words: Iterable[str]) -> None:
    busy_s = float(next(iter(words), 20))
    print("| | first small job | last of 50 | the large job |\n|---|---|---|---|")
    for what, layout, scheduler in (
        ("Slurm, one partition, `builtin`", "one", "builtin"),
        ("Slurm, one partition, `backfill`", "one", "backfill"),
        ("Slurm, a partition for each size", "per-size", "backfill"),
    ):
        async with folder() as directory, on_slurm(directory, layout, scheduler) as submit:
            tell(what, await trace(directory, submit, busy_s))
    async with folder() as directory, here(directory) as submit:
        tell("haptera", await trace(directory, submit, busy_s))


def tell(what: str, ran: Ran) -> None:
    print(f"| {what} | {ran.first:.1f} s | {ran.last:.1f} s | {ran.head:.1f} s |", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
