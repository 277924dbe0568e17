"""How long 16 nodes of the demo take, from an acknowledged `apply` to 15 services that answer.

    python -m benchmarks.convergence [ROUNDS]

The baseline, in the same run and in turns with it, is what delays and process starts alone cost:
the same lab, BMCs and web servers, but a plain script that sends each BMC its command at once, and
nodes whose init starts the web server itself. Both once with the demo's delays and once without
any. The ratios are what counts; the times are of this machine at this moment.
"""

import asyncio
import contextlib
import os
import select
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from haptera.cli.lab import AGENT, HELLO_MS, PARENT
from haptera.client import Client, calls, find
from haptera.lab.layout import LabConfig, LabNode, Places, octet, open_cluster, parse_bmc
from haptera.lab.settings import lab_nodes
from haptera.lab.supervisor import open_lab
from haptera.lab.tree import descendants
from haptera.rest.schemas import SiteBody, SiteFile
from haptera.runtime import clock
from haptera.site.model.site import Site, parse_site

ROOT: Final = Path(__file__).resolve().parents[1]
QUICKSTART: Final = ROOT / "examples" / "quickstart"
ROUNDS: Final = 3
PORT: Final = 8080
POLL_S: Final = 0.01
RUN_WITHIN_S: Final = 60.0
NS_PER_S: Final = 1_000_000_000
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Delays:
    """How long a power command takes, and how much later each further rack boots."""

    what: str
    command_ms: int
    rack_ms: int


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: how long it took, and the processor time of each sort of process."""

    took_s: float
    cpu_ticks: Counter[str]


DELAYS: Final = (Delays("the demo's delays", 300, 1200), Delays("no delays", 0, 0))


async def haptera_run(directory: Path, delays: Delays) -> Ran:
    """Apply the site to a parent that was told of the nodes, but of nothing desired."""
    text, constants, cluster = site_text(directory, delays)
    site = parse_site([SiteFile("site.yaml", text)], constants)
    parent = {
        "name": site.cluster,
        "modules": list(site.modules),
        "hello_ms": HELLO_MS,
        "constants": constants,
    }
    nodes = nodes_of(site)
    config = LabConfig(
        directory, cluster, nodes, parent=PARENT, agent=AGENT, parent_arguments=parent
    )
    async with lab(config):
        client = await ready(config.places)
        await asyncio.to_thread(apply, client, text.partition("\ndesired:")[0] + "\n", constants)
        spent = cpu_ticks()
        await asyncio.to_thread(apply, client, text, constants)
        began = clock.now_ns()
        await all_answer(nodes)
        return Ran((clock.now_ns() - began) / NS_PER_S, cpu_ticks() - spent)


async def plain_run(directory: Path, delays: Delays) -> Ran:
    """Send each BMC its command at once; the node's init starts the web server itself."""
    text, constants, cluster = site_text(directory, delays)
    nodes = nodes_of(parse_site([SiteFile("site.yaml", text)], constants))
    config = LabConfig(
        directory,
        cluster,
        nodes,
        parent="benchmarks.convergence:idle_process",
        agent="benchmarks.convergence:web_process",
    )
    async with lab(config):
        spent = cpu_ticks()
        began = clock.now_ns()
        async with asyncio.TaskGroup() as tasks:
            for node in nodes:
                tasks.create_task(power_on(node))
        await all_answer(nodes)
        return Ran((clock.now_ns() - began) / NS_PER_S, cpu_ticks() - spent)


def idle_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """In place of a parent: nothing."""
    select.select((), (), ())


def web_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """In place of an agent: the web server itself."""
    own = {"HAPTERA_NODE": arguments["node"], "HAPTERA_ADDRESS": arguments["address"]}
    environment = {**os.environ, **own, "HAPTERA_PORT": str(PORT)}
    os.execve(sys.executable, [sys.executable, str(QUICKSTART / "web.py")], environment)


@asynccontextmanager
async def lab(config: LabConfig) -> AsyncIterator[None]:
    async with asyncio.timeout(RUN_WITHIN_S), open_lab(config):
        yield


def site_text(directory: Path, delays: Delays) -> tuple[str, dict[str, str], UUID]:
    """The quickstart's site file with these delays, and what its templates may name."""
    cluster = open_cluster(Places(directory))
    text = (QUICKSTART / "site.yaml").read_text(encoding="utf-8")
    begin, _, _ = text.partition("  delay_ms:")
    text = f"{begin}  delay_ms: {delays.command_ms}\n  delay_rack_ms: {delays.rack_ms}\n"
    constants = {"x": str(octet(cluster)), "python": sys.executable, "site": str(QUICKSTART)}
    return text, constants, cluster


def nodes_of(site: Site) -> tuple[LabNode, ...]:
    found = [one for one in site.entities if one.entity.kind == "node"]
    return lab_nodes({one.entity.name: one.attributes for one in found}, site.lab)


async def ready(places: Places) -> Client:
    while not places.client.exists():  # noqa: ASYNC110  a file tells nobody that it was written
        await asyncio.sleep(POLL_S)
    return Client(find(places.client).access)


def apply(client: Client, text: str, constants: dict[str, str]) -> None:
    client.ask(calls.apply(SiteBody([SiteFile("site.yaml", text)], constants)))


async def power_on(node: LabNode) -> None:
    body = b'{"power":"on","command":"by-hand"}'
    await ask(parse_bmc(node.bmc, where=node.name), b"POST /power", body)


async def all_answer(nodes: tuple[LabNode, ...]) -> None:
    """Every node's own name on its own address, but for the one whose BMC refuses."""
    async with asyncio.TaskGroup() as tasks:
        for node in nodes:
            if node.refuse is None:
                tasks.create_task(answers(node))


async def answers(node: LabNode) -> None:
    expected = f"\n{node.name}\n".encode()
    # A server that is not there yet tells nobody when it will be.
    while not (await ask((node.address, PORT), b"GET /")).endswith(expected):  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)


async def ask(address: tuple[str, int], what: bytes, body: bytes = b"") -> bytes:
    """The answer as it comes; nothing where nobody listens."""
    try:
        reader, writer = await asyncio.open_connection(*address)
    except OSError:
        return b""
    with contextlib.closing(writer):
        length = str(len(body)).encode()
        writer.write(
            what + b" HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + b"\r\n\r\n" + body
        )
        return await reader.read()


def cpu_ticks() -> Counter[str]:
    """Processor time of each sort of process below this one, ended children included."""
    spent: Counter[str] = Counter()
    for process in descendants([os.getpid()]):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii", errors="replace")
            name, _, rest = text.partition("(")[2].rpartition(")")
            ticks = sum(map(int, rest.split()[11:15]))
            spent[sort_of(name)] += ticks
    return spent


def sort_of(name: str) -> str:
    """What a process is, by the name that it shows in ps."""
    if name.startswith("rack"):
        return "agents"
    return "web servers and keepers" if name.startswith("python") else name.partition(" ")[0]


def rounds(count: int, delays: Delays) -> Iterator[tuple[Ran, Ran]]:
    """In turns, each in a lab of its own."""
    for _ in range(count):
        with tempfile.TemporaryDirectory(prefix="haptera-") as first:
            ours = asyncio.run(haptera_run(Path(first), delays))
        with tempfile.TemporaryDirectory(prefix="haptera-") as second:
            yield ours, asyncio.run(plain_run(Path(second), delays))


def main() -> None:
    os.environ["PYTHONPATH"] = str(ROOT)  # the lab's processes import this file too
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"machine: {os.cpu_count()} cores; {count} rounds; medians")
    for delays in DELAYS:
        runs = list(rounds(count, delays))
        ours = statistics.median(one.took_s for one, _ in runs)
        plain = statistics.median(one.took_s for _, one in runs)
        ratios = [one.took_s / other.took_s for one, other in runs]
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"\n{delays.what} ({delays.command_ms} ms a command, {delays.rack_ms} ms a rack)")
        print(f"  baseline, plain script and process starts  {plain:.2f} s")
        print(f"  haptera, apply acknowledged to 15 answers  {ours:.2f} s")
        print(f"  ratio {statistics.median(ratios):.2f} (each round: {each})")
        for who, one in (("baseline", runs[-1][1]), ("haptera", runs[-1][0])):
            spent = {name: ticks / TICKS_PER_S for name, ticks in one.cpu_ticks.items() if ticks}
            told = ", ".join(f"{name} {cpu:.2f}" for name, cpu in sorted(spent.items()))
            print(f"  processor seconds, {who}: {told}")


if __name__ == "__main__":
    main()
