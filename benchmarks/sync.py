"""What very many children cost their parent, without changes and with: real keys and datagrams.

    python -m benchmarks.sync [bare] [CHILDREN ...]

A real parent with its store and its history, and all children in one other process; each says
hello every 10 s, and 0, 1 or 10 % of them say something new with it. Told are: what share of a core
the parent uses, how long a change takes until its sender holds the parent's sealed answer, which
comes at the end of the turn that decides on it (processes that wait for a core count, too), how
many children were not fresh at any look, and how much memory one takes in the parent. The baseline
is a plain loop that receives as many datagrams of a hello's size. Of `bare` nodes nothing is
desired, and no module looks at them. HELLO_S=100 in the environment has them say hello each 100 s.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks.children import HELLO_S, TICK_S, Crowd
from benchmarks.parent_of_many import BARE, SITE, Parent, cpu_s, prepare, serving, wait_for

CHILDREN: Final = (1_000, 10_000)
CHANGING: Final = (0.0, 0.01, 0.1)
WINDOW_S: Final = 1.6 * HELLO_S
LOOK_EVERY_S: Final = 4.0
HELLO_BYTES: Final = 138
BASELINE: Final = """
import socket
with socket.socket(type=socket.SOCK_DGRAM) as sink:
    sink.bind(("127.0.0.1", 0))
    print(sink.getsockname()[1], flush=True)
    while True:
        sink.recv(2048)
"""


def baseline(children: int) -> float:
    """What share of a core the plain loop takes."""
    command = [sys.executable, "-c", BASELINE]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as sink,
        socket.socket(type=socket.SOCK_DGRAM) as sender,
    ):
        assert sink.stdout is not None
        to = "127.0.0.1", int(sink.stdout.readline())
        before, begun, said = cpu_s(sink.pid), time.monotonic(), 0
        while (passed := time.monotonic() - begun) < HELLO_S:
            due = int(passed / HELLO_S * children)
            for _ in range(said, due):
                sender.sendto(bytes(HELLO_BYTES), to)
            said = due
            time.sleep(TICK_S)
        took = (cpu_s(sink.pid) - before) / HELLO_S
        sink.kill()
    return took


def not_fresh(parent: Parent) -> int:
    """How many are suspected, or taken for lost."""
    told = parent.metrics()
    return int(sum(told[f'haptera_children{{tier="{one}"}}'] for one in ("suspect", "lost")))


def window(parent: Parent, crowd: Crowd, changing: float) -> None:
    """Let this share of the children change, and tell what that took."""
    before, begun, most = parent.cpu_s(), time.monotonic(), 0
    crowd.begin(changing)
    while time.monotonic() < begun + WINDOW_S:
        time.sleep(LOOK_EVERY_S)
        most = max(most, not_fresh(parent))
    used_s, passed_s = parent.cpu_s() - before, time.monotonic() - begun
    told = crowd.end()
    each_us = used_s / told["said"] * 1e6
    took = told["took"]
    spread = [took[int(len(took) * part)] * 1e3 for part in (0.5, 0.99)] if took else []
    times = "".join(f", p{one} {ms:.0f} ms" for one, ms in zip((50, 99), spread, strict=False))
    print(
        f"  {changing:.0%} change: {used_s / passed_s:.1%} of a core, {each_us:.0f} us a hello;"
        f" {len(took)} changes answered{times};"
        f" {told['unanswered']} not; {told['opened']} messages opened"
        f" for {told['said']} hellos, {told['refused']} refused;"
        f" at most {most} not fresh",
        flush=True,
    )


def measure(folder: Path, children: int, site_text: str) -> None:
    prepare(folder / "bare", 1, site_text)
    with serving(folder / "bare") as alone:
        wait_for(lambda: alone.get("/v1/summary") is not None)
        bare_kb = alone.resident_kb()
    home = folder / "home"
    cluster = prepare(home, children, site_text)
    with closing(Crowd(cluster, children)) as crowd, serving(home) as parent:
        wait_for(lambda: parent.get("/v1/summary") is not None)
        crowd.begin()
        wait_for(lambda: (parent.fresh if site_text is BARE else parent.converged)() == children)
        crowd.end()
        print(f"{children} children, a hello each {HELLO_S:g} s; load {os.getloadavg()[0]:.0f}")
        print(f"  memory: {(parent.resident_kb() - bare_kb) / children:.1f} kB a child")
        for changing in CHANGING:
            window(parent, crowd, changing)
    print(f"  plain receive loop: {baseline(children):.2%} of a core", flush=True)


def main(sizes: list[str]) -> None:
    site_text = BARE if "bare" in sizes else SITE
    for children in map(int, [one for one in sizes if one != "bare"] or CHILDREN):
        with tempfile.TemporaryDirectory(prefix="haptera-children-") as directory:
            measure(Path(directory), children, site_text)


if __name__ == "__main__":
    main(sys.argv[1:])
