"""How a parent serves 10,000 nodes by one module: looked at every 10 s, watched, switched on.

    python -m benchmarks.module_scale [NODES]

A real parent with a real module's process; the machines are states in the module's memory that
answer after 20 ms. Told are: how long it takes until all are as desired, and the processor time of
the parent and its module meanwhile; how much memory a node takes in the parent; what share of a
core both take when nothing happens; and how long a parent that was killed takes, started again,
until all were read again, with the steps that were done meanwhile (none should be).
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from haptera.client import Client, calls, find
from haptera.lab.tree import descendants

NODES: Final = 10_000
IDLE_S: Final = 20.0
POLL_S: Final = 0.25
WITHIN_S: Final = 600.0
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
ROOT: Final = Path(__file__).resolve().parents[1]
SITE: Final = """\
cluster: crowd
nodes:
  "n[00001-{last:05}]": {{bmc: "{{name}}"}}
desired:
  "n[00001-{last:05}]": {{power: on}}
modules:
  crowd: {{place: "crowd:module", context: parent}}
"""


class Parent:
    """A parent in its directory, as the command line starts it."""

    def __init__(self, home: Path, address: str) -> None:
        self.home = home
        self._client_file = home / ".haptera" / "client.json"
        self._client_file.unlink(missing_ok=True)
        words = ["serve", "--dir", str(home), "--site", str(home / "site.yaml")]
        words += ["--listen", address]
        with (home / "serve.err").open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "haptera", *words], stderr=errors
            )
        wait_for(self._client_file.exists)
        self._client = Client(find(self._client_file).access)

    def counts(self) -> dict[str, int]:
        """How many nodes stand how."""
        return dict(self._client.ask(calls.summary()).counts.get("node", {}))

    def close(self) -> None:
        self._client.close()

    def cpu_s(self) -> tuple[float, float]:
        """The processor time of the parent, and of all that it started."""
        below = sum(_cpu_s(one.pid) for one in descendants([self.process.pid]))
        return _cpu_s(self.process.pid), below

    def memory_kb(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def wait_for(found: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not found():
        assert time.monotonic() < until, "waited without success"
        time.sleep(POLL_S)


@contextmanager
def serving(home: Path, address: str = "127.0.0.1") -> Iterator[Parent]:
    parent = Parent(home, address)
    try:
        yield parent
    finally:
        parent.close()
        parent.process.send_signal(signal.SIGTERM)
        parent.process.wait()


def prepare(home: Path, nodes: int) -> None:
    (home / "crowd.py").write_bytes((ROOT / "benchmarks" / "crowd.py").read_bytes())
    (home / "site.yaml").write_text(SITE.format(last=nodes))


def bare_kb(home: Path) -> int:
    """What a parent of one node takes."""
    home.mkdir()
    prepare(home, 1)
    with serving(home) as parent:
        wait_for(lambda: parent.counts().get("converged") == 1)
        return parent.memory_kb()


def main(nodes: int) -> None:
    with tempfile.TemporaryDirectory(prefix="haptera-crowd-") as directory:
        home, bare = Path(directory) / "home", bare_kb(Path(directory) / "bare")
        home.mkdir()
        prepare(home, nodes)
        began = time.monotonic()
        with serving(home) as parent:
            wait_for(lambda: parent.counts().get("converged") == nodes)
            took, (own, below) = time.monotonic() - began, parent.cpu_s()
            print(f"{nodes} nodes as desired after {took:.1f} s")
            print(f"  processor time: parent {own:.1f} s, module and zygote {below:.1f} s")
            print(f"  memory: {(parent.memory_kb() - bare) / nodes:.1f} kB a node")
            before, since = parent.cpu_s(), time.monotonic()
            time.sleep(IDLE_S)
            idle = [
                100 * (now - then) / (time.monotonic() - since)
                for now, then in zip(parent.cpu_s(), before, strict=True)
            ]
            print(f"  idle: parent {idle[0]:.1f} %, module {idle[1]:.1f} % of a core")
            parent.process.kill()
        (steps,) = home.rglob("steps")
        done, began = len(steps.read_text().splitlines()), time.monotonic()
        with serving(home) as parent:
            wait_for(lambda: parent.counts().get("converged") == nodes)
            back = time.monotonic() - began
        again = len(steps.read_text().splitlines()) - done
        print(f"  killed and started again: back after {back:.1f} s, {again} steps done again")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else NODES)
