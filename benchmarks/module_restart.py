"""How soon a killed module serves again, over the zygote: from SIGKILL to ready, and to an answer.

    python -m benchmarks.module_restart [ROUNDS]

The baseline, in the same run and in turns with it, is what a daemon without a zygote would do:
start a new Python that imports the same module and serves. The ratios are what counts; the times
are of this machine at this moment.
"""

import asyncio
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from haptera.model.effects import Call, Start, Stop, Work
from haptera.model.entity import EntityId
from haptera.model.events import Answered, Event, Exited, Ready
from haptera.modules import load
from haptera.runtime import clock
from haptera.runtime.processes.forking import PRELOAD, LoopZygote, exec_zygote
from haptera.runtime.processes.process import ModuleProcesses
from haptera.wire.ipc import encode_frame

ROUNDS = 200
ROUNDS_WARM = 5
PLACE = "haptera.modules.service.module:module"
NS_PER_MS = 1_000_000
READY = Ready("service", 1, "1", load("service").manifest())
SERVE = (
    "import sys\n"
    "from haptera.runtime.processes.fork_targets import module_process\n"
    "arguments = {'name': 'service', 'place': sys.argv[2], 'folder': None,"
    " 'memory_bytes_max': 1 << 32}\n"
    "module_process(arguments, [int(sys.argv[1])])\n"
)
LOOK = Call(
    1, Work.LOOK, "service", "look_run", EntityId("service", "web", "n01"), {}, {}, "", None
)


class Restarts:
    """A module that is killed, again and again, with the daemon's own code around it."""

    def __init__(self, run_dir: Path) -> None:
        self._zygote = LoopZygote(lambda: exec_zygote([*PRELOAD, "haptera.modules.service.module"]))
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._processes = ModuleProcesses(
            self._zygote, self._deliver, places={"service": PLACE}, run_dir=run_dir, log_dir=run_dir
        )

    async def begin(self) -> None:
        self._processes.start(Start("service"))
        assert await self._events.get() == READY

    async def restart_ns(self) -> tuple[int, int]:
        """Kill it; as soon as its exit is heard of, start it; until it is ready, and answered."""
        pid = module_pid()
        began = clock.now_ns()
        os.kill(pid, signal.SIGKILL)
        assert isinstance(await self._events.get(), Exited)
        self._processes.start(Start("service"))
        assert await self._events.get() == READY
        ready = clock.now_ns() - began
        await self._answer()
        return ready, clock.now_ns() - began

    async def replace_ns(self) -> int:
        """Start another process beside the one that serves, until it could take over."""
        began = clock.now_ns()
        self._processes.start(Start("service", 2))
        assert isinstance(await self._events.get(), Ready)
        took = clock.now_ns() - began
        self._processes.stop(Stop("service", 2))
        assert isinstance(await self._events.get(), Exited)
        return took

    def end(self) -> None:
        self._processes.close()
        self._zygote.close()

    async def _answer(self) -> None:
        self._processes.call(LOOK)
        assert isinstance(await self._events.get(), Answered)

    def _deliver(self, events: list[Event]) -> None:
        for event in events:
            self._events.put_nowait(event)


def exec_ns(run_dir: Path) -> int:
    """From the start of a new Python to its first answer."""
    ours, theirs = socket.socketpair()
    began = clock.now_ns()
    command = [sys.executable, "-c", SERVE, str(theirs.fileno()), PLACE]
    begin = {"op": "begin", "module": "service", "settings": {}, "run_dir": str(run_dir)}
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        ours.sendall(encode_frame(begin))
        ours.recv(65_536)  # ready
        ours.sendall(encode_frame(look_frame()))
        ours.recv(65_536)
        took = clock.now_ns() - began
        process.kill()
    return took


def bare_ns() -> int:
    """From the start of a new Python that does nothing to its end: what no restart can beat."""
    began = clock.now_ns()
    subprocess.run([sys.executable, "-I", "-c", ""], check=True)
    return clock.now_ns() - began


def look_frame() -> dict[str, object]:
    entity = {"kind": "service", "name": "web", "node": "n01"}
    work = {"op": "call", "id": 1, "work": "look", "part": "look_run", "entity": entity}
    empty = {"attributes": {}, "values": {}, "digest": ""}
    absent = {"deadline_ns": None, "intent": None, "boot": None}
    return {**work, **empty, **absent}


def module_pid() -> int:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and is_module(int(entry)):
            return int(entry)
    raise LookupError("no module runs")


def is_module(pid: int) -> bool:
    """Whether it is a module of ours: its zygote is our child."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
        parent = Path(f"/proc/{text.rpartition(')')[2].split()[1]}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "(module service)" in text and parent.rpartition(")")[2].split()[1] == str(os.getpid())


async def measure(rounds: int, run_dir: Path) -> list[tuple[int, ...]]:
    restarts = Restarts(run_dir)
    await restarts.begin()
    measured: list[tuple[int, ...]] = []
    for number in range(rounds + ROUNDS_WARM):
        took = (
            *await restarts.restart_ns(),
            await restarts.replace_ns(),
            exec_ns(run_dir),
            bare_ns(),
        )
        if number >= ROUNDS_WARM:
            measured.append(took)
    restarts.end()
    return measured


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as run_dir:
        ready, answered, replaced, baseline, bare = zip(
            *asyncio.run(measure(rounds, Path(run_dir))), strict=True
        )
    print(f"{f'module restart, {rounds} rounds in turns':42}      p50      p90      p99      max")
    show("killed, forked by the zygote, ready", ready)
    show("... and has answered a look", answered)
    show("replaced live: a new process is ready", replaced)
    show("baseline: new Python, module, answered", baseline)
    show("for scale: new Python that does nothing", bare)
    times = statistics.median(baseline) / statistics.median(answered)
    print(f"the zygote is {times:.1f} times as fast as the baseline (medians)")
    times = statistics.median(bare) / statistics.median(answered)
    print(f"and {times:.1f} times as fast as starting a Python that does nothing")


def show(what: str, times_ns: tuple[int, ...]) -> None:
    ordered = sorted(times_ns)
    chosen = [ordered[int(share * (len(ordered) - 1))] / NS_PER_MS for share in (0.5, 0.9, 0.99, 1)]
    print(f"{what:42}" + "".join(f"{ms:6.1f} ms" for ms in chosen))


if __name__ == "__main__":
    main()
