"""A parent of very many children is killed: how soon does its next process serve, and know them?

    python -m benchmarks.restart [CHILDREN ...]

A real parent with its store, and all children in one other process, which say hello each 10 s all
the time. The parent is killed and started again. Told are: when its API answers, and when it has
counted all nodes for an answer; when the first child has an answer whose seal opens, when all have
one, and when all nodes are known to be as desired; and how many children had to enrol again and how
often a machine's power was switched (both should be 0). The baseline is another Python that does
the least: it reads the same rows, and opens one sealed message of each child.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks.children import HELLO_S, Crowd
from benchmarks.parent_of_many import Parent, prepare, serving, wait_for

CHILDREN: Final = (1_000, 10_000)
TIMES: Final = 3
BASELINE: Final = """
import sqlite3, sys
from time import process_time
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
state, count = sys.argv[1:]
connection = sqlite3.connect(f"file:{state}?mode=ro", uri=True)
for table in ("entities", "desired", "nodes", "sessions"):
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
assert len(rows) == int(count), len(rows)
keys = [row[1] for row in rows]
read_s, body = process_time(), bytes(90)
sealed = [ChaCha20Poly1305(key).encrypt(bytes(12), body, None) for key in keys]
sealed_s = process_time()
for key, one in zip(keys, sealed):
    ChaCha20Poly1305(key).decrypt(bytes(12), one, None)
print(round(read_s + process_time() - sealed_s, 2))
"""


def restart(home: Path, crowd: Crowd, children: int) -> None:
    """Have the parent's next process find its children, and tell how that went."""
    crowd.begin()
    with serving(home) as parent:
        wait_for(lambda: parent.get("/v1/caller") is not None, pause_s=0.01)
        served_s, cpu_s = time.monotonic() - parent.began_at, parent.cpu_s()
        wait_for(lambda: parent.get("/v1/summary") is not None, pause_s=0.01)
        counted_s = time.monotonic() - parent.began_at
        wait_for(lambda: parent.converged() == children)
        known_s = time.monotonic() - parent.began_at
        told, enrolled = crowd.end(), parent.enrolments()
        parent.process.kill()
    first_s, all_s = told["first_at"] - parent.began_at, told["last_at"] - parent.began_at
    steps = sum(len(one.read_text().splitlines()) for one in home.rglob("steps"))
    print(
        f"  serves after {served_s:.2f} s ({cpu_s:.2f} s of CPU), has counted all after"
        f" {counted_s:.2f} s; answers a child after"
        f" {first_s:.2f} s, all after {all_s:.1f} s; knows all after {known_s:.1f} s;"
        f" {told['silent']} not answered, {enrolled} enrolments, {steps} power actions",
        flush=True,
    )


def baseline(home: Path, children: int) -> None:
    (state,) = home.rglob("state.db")
    command = [sys.executable, "-c", BASELINE, str(state), str(children)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print(
        f"  a Python that reads the rows, opens a message of each: {done.stdout.strip()} s of CPU"
    )


def measure(home: Path, children: int) -> None:
    print(f"{children} children, a hello each {HELLO_S:g} s; load {os.getloadavg()[0]:.0f}")
    with closing(Crowd(prepare(home, children), children)) as crowd:
        with serving(home) as parent:
            known(parent, crowd, children)
            parent.process.kill()
        for _ in range(TIMES):
            restart(home, crowd, children)
    baseline(home, children)


def known(parent: Parent, crowd: Crowd, children: int) -> None:
    """Until the parent knows all of them for the first time."""
    crowd.begin()
    wait_for(lambda: parent.converged() == children)
    crowd.end()


def main(sizes: list[str]) -> None:
    for children in map(int, sizes or CHILDREN):
        with tempfile.TemporaryDirectory(prefix="haptera-children-") as directory:
            measure(Path(directory) / "home", children)


if __name__ == "__main__":
    main(sys.argv[1:])
