"""How long a command takes: to start, and to tell how a cluster of 10,000 nodes stands.

    python -m benchmarks.cli [ROUNDS [NODES]]

Each is asked of a real parent, in turns with its baselines: a Python that does nothing, and a bare
script that fetches the same bytes and throws them away. Wall-clock times, and CPU time of the
command alone, in milliseconds; the least of all rounds beside the median.
"""

import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from haptera.client import Access, Client, UnreachableError, calls, find
from haptera.model.errors import HapteraError
from haptera.runtime import clock

ROUNDS = 15
NODES = 10_000
ADDRESS = "127.99.43.1"
READY_WITHIN_NS = 60_000_000_000
NS_PER_MS = 1_000_000
PATH = "/v1/entities"
BARE = """\
import socket
with socket.create_connection(({host!r}, {port})) as connection:
    connection.sendall({request!r})
    while connection.recv(1 << 18): pass
"""


@dataclass(frozen=True, slots=True)
class Command:
    """One thing measured: what is typed, and how long it took, in all and of the processor."""

    name: str
    typed: Sequence[str]
    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def run(self, folder: Path) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = clock.now_ns()
        subprocess.run([sys.executable, *self.typed], cwd=folder, check=True, capture_output=True)
        self.wall_ms.append((clock.now_ns() - began) / NS_PER_MS)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        self.cpu_ms.append(spent * 1_000)

    def __str__(self) -> str:
        figures = (self.wall_ms, self.cpu_ms)
        told = (f"{min(one):6.0f} {statistics.median(one):6.0f}" for one in figures)
        return f"{self.name:34} wall {' CPU '.join(told)}"


@contextmanager
def parent(folder: Path, nodes: int) -> Iterator[Access]:
    """A parent of so many nodes, all of which should be on, and of which nothing is known."""
    racks = nodes // 100
    name = f"rack[1-{racks}]n[001-100]"
    site = f'cluster: big\nnodes: {{"{name}": {{rack: "{{rack}}"}}}}\n'
    site += f'desired: {{"{name}": {{power: on}}}}\n'
    (folder / "site.yaml").write_text(site.replace("{rack}", "1"))
    typed = ["-m", "haptera", "serve", "--dir", str(folder), "--listen", ADDRESS]
    serving = subprocess.Popen([sys.executable, *typed, "--site", str(folder / "site.yaml")])
    try:
        yield ready(folder, nodes)
    finally:
        serving.send_signal(signal.SIGINT)
        serving.wait()


def ready(folder: Path, nodes: int) -> Access:
    until = clock.now_ns() + READY_WITHIN_NS
    while clock.now_ns() < until:
        try:
            access = find(folder / ".haptera" / "client.json").access
            with Client(access) as client:
                if len(client.ask(calls.entities(kind="node")).entities) == nodes:
                    return access
        except UnreachableError:
            continue
    raise HapteraError("the parent does not come up", where=str(folder), do="see what it wrote")


def request(access: Access) -> bytes:
    lines = (f"GET {PATH} HTTP/1.0", "Host: localhost", f"Authorization: Bearer {access.token}")
    return "\r\n".join([*lines, "", ""]).encode()


def answer_bytes(access: Access) -> tuple[int, float]:
    """How much is answered, and how soon, over a connection that is there."""
    parts = urlsplit(access.url)
    connection = HTTPConnection(parts.hostname or "", parts.port)
    connection.connect()
    began = clock.now_ns()
    connection.request("GET", PATH, headers={"Authorization": f"Bearer {access.token}"})
    size = len(connection.getresponse().read())
    connection.close()
    return size, (clock.now_ns() - began) / NS_PER_MS


def main(rounds: int = ROUNDS, nodes: int = NODES) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with parent(folder, nodes) as access:
            parts = urlsplit(access.url)
            bare = BARE.format(host=parts.hostname, port=parts.port, request=request(access))
            haptera = ("-m", "haptera")
            commands = [
                Command("python -c pass", ("-c", "pass")),
                Command("a bare script, the same bytes", ("-c", bare)),
                Command("haptera --version", (*haptera, "--version")),
                Command("haptera get node:rack1n001", (*haptera, "get", "node:rack1n001")),
                Command(f"haptera status, {nodes:,} nodes", (*haptera, "status")),
                Command("haptera status -o name", (*haptera, "status", "-o", "name")),
            ]
            answered = [answer_bytes(access) for _ in range(rounds)]
            for _ in range(rounds):
                for command in commands:
                    command.run(folder)
    print(f"{rounds} rounds; least and median, ms")
    size, took = answered[0][0], [ms for _, ms in answered]
    print(f"{'the answer alone':34} wall {min(took):6.0f} {statistics.median(took):6.0f}", end="")
    print(f"  {size:,} bytes")
    for command in commands:
        print(command)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
