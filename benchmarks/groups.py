"""What groups take: placing, a turn of the controller, other leaders, replacements, and a restart.

    python -m benchmarks.groups [KILLS [NODES]]

Placing: 200 groups of 3 over 1,000 nodes in racks and power strips that overlap, beside greed,
which looks at nothing but the least loaded. A turn: the same groups where all is settled.
A leader: the lab of examples/groups, whose leader's process is killed again and again, then all of
its node stopped; from its last effect to the first of the next epoch. A replacement: from then on
until three run, none of them on that node. Beside them what starting a bare process and a Python
takes in the same minute. A restart: a lab of NODES nodes (0: none) with 10 replicas each, whose
parent is killed: from the first answer of its API until it knows of each replica that it runs,
with the CPU time that it uses meanwhile, beside the time that a process has to send and get as many
datagrams of a node's size on loopback. The parent is not asked meanwhile: it says afterwards how
long it has known. With the CPU time that all nodes use in the whole wait.
Wall-clock times in milliseconds; the load average is told with them.
"""

import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from haptera.controllers.groups import decide
from haptera.controllers.replication import ReplicaHost, settle
from haptera.daemon.backend.follow_ups import OWNER
from haptera.keeping import keeper, procfs
from haptera.kinds.service import Run
from haptera.lab.tree import descendants
from haptera.model.answers.views import Condition, DesiredView, EntityView, ObservedView
from haptera.model.entity import EntityId, node_id

NODES, GROUPS, REPLICAS, KILLS, LAB_NODES = 1_000, 200, 3, 10, 50
OF_A_NODE, SILENCES = 10, 5
# Before a kill, so that its node has nothing else to do; and after it, until the parent is asked.
QUIET_S, KNOWN_WITHIN_S = 3, 5
DATAGRAMS_OF_A_NODE, DATAGRAM_BYTES = 4, 1_200
RACKS, STRIPS = 50, 80
DIMENSIONS = ("rack", "pdu")
WITHIN_S = 60
ROOT = Path(__file__).parents[1]


def hosts() -> dict[str, ReplicaHost]:
    rng = random.Random(1)
    return {
        f"n{number:04}": ReplicaHost(
            f"n{number:04}",
            {
                "rack": frozenset([f"r{number % RACKS}"]),
                "pdu": frozenset(f"p{one}" for one in rng.sample(range(STRIPS), 2)),
            },
        )
        for number in range(NODES)
    }


def placed(known: dict[str, ReplicaHost]) -> list[dict[int, str]]:
    loads = dict.fromkeys(known, 0)
    found = []
    for _ in range(GROUPS):
        one = settle(range(REPLICAS), known, {}, (), DIMENSIONS, loads)
        assert not one.shared
        for name in one.nodes.values():
            loads[name] += 1
        found.append(dict(one.nodes))
    return found


def by_greed(known: dict[str, ReplicaHost]) -> list[dict[int, str]]:
    loads = dict.fromkeys(known, 0)
    found = []
    for _ in range(GROUPS):
        chosen = sorted(loads, key=lambda name: (loads[name], name))[:REPLICAS]
        for name in chosen:
            loads[name] += 1
        found.append(dict(enumerate(chosen)))
    return found


def views(known: dict[str, ReplicaHost], where: list[dict[int, str]]) -> dict[str, EntityView]:
    """The whole cluster, settled, as the controller reads it."""
    up = {"agent": ObservedView("up", known=True, method="read", by="sync", age_ms=0)}
    found = [
        view_of(
            node_id(name),
            {one: ", ".join(sorted(groups)) for one, groups in host.groups.items()},
            up,
            power="on",
        )
        for name, host in known.items()
    ]
    running = {"run": ObservedView(Run.RUNNING, known=True, method="read", by="look_run", age_ms=0)}
    for number, nodes in enumerate(where):
        group = f"g{number}"
        found.append(
            view_of(
                EntityId("group", group, None),
                {},
                {},
                command="serve",
                replicas=REPLICAS,
                apart="rack, pdu",
                leader="none",
            )
        )
        found += [
            view_of(
                EntityId("replica", f"{group}.{rank}", node),
                {},
                running,
                command="serve",
                run=Run.RUNNING,
                placement=1,
            )
            for rank, node in nodes.items()
        ]
    return {view.entity: view for view in found}


def view_of(
    entity: EntityId,
    attributes: dict[str, str],
    observed: dict[str, ObservedView],
    **desired: str | int,
) -> EntityView:
    wanted = {name: DesiredView(value, OWNER) for name, value in desired.items()}
    return EntityView(
        str(entity),
        entity.kind,
        entity.name,
        entity.node,
        1,
        attributes,
        wanted,
        observed,
        Condition.CONVERGED,
        [],
        0,
    )


Found = TypeVar("Found")


def took_ms(what: str, times: list[float]) -> None:
    ordered = sorted(times)
    print(
        f"{what:<48} p50 {statistics.median(ordered):8.1f}  min {ordered[0]:8.1f}"
        f"  max {ordered[-1]:8.1f}  ({len(ordered)})"
    )


def timed(act: Callable[[], Found], rounds: int = 3) -> tuple[list[float], Found]:
    times, found = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        found.append(act())
        times.append((time.perf_counter() - began) * 1e3)
    return times, found[-1]


@contextmanager
def lab(folder: Path, site: Path = ROOT / "examples" / "groups" / "site.yaml") -> Iterator[Path]:
    command = [sys.executable, "-m", "haptera", "lab", "--site", str(site), "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield folder / ".haptera"
    finally:
        process.terminate()
        process.wait(WITHIN_S)


def last(effects: Path) -> list[str]:
    """The last whole line: when, epoch, rank, node, incarnation, pid, number."""
    lines = effects.read_text().splitlines() if effects.exists() else []
    return lines[-1].split() if lines else []


def switches(effects: Path, kills: int) -> list[float]:
    """How long nobody acts after the leader's process is killed."""
    await_that(lambda: last(effects))
    times = []
    for _ in range(kills):
        time.sleep(2)  # until the one before runs again
        epoch, pid = int(last(effects)[1]), int(last(effects)[5])
        os.kill(pid, signal.SIGKILL)
        await_that(lambda epoch=epoch: int(last(effects)[1]) > epoch)
        rows = [line.split() for line in effects.read_text().splitlines()]
        ended = max(int(row[0]) for row in rows if int(row[1]) == epoch)
        began = min(int(row[0]) for row in rows if int(row[1]) > epoch)
        times.append((began - ended) / 1e6)
    return times


def silences(root: Path) -> tuple[list[float], list[float]]:
    """How long nobody acts after all of the leader's node stops, and until three run elsewhere."""
    effects, switched, replaced = root / "shared" / "effects", [], []
    for _ in range(SILENCES):
        await_that(lambda: len(running(root)) == REPLICAS)
        epoch, node = int(last(effects)[1]), last(effects)[3]
        init = int((root / "nodes" / node / "init.pid").read_text())
        pids = [init, *(one.pid for one in descendants([init]))]
        send(pids, signal.SIGSTOP)
        began = time.monotonic()
        try:
            await_that(lambda epoch=epoch: int(last(effects)[1]) > epoch)
            await_that(lambda node=node: len(running(root) - {node}) == REPLICAS)
            replaced.append((time.monotonic() - began) * 1e3)
        finally:
            send(pids, signal.SIGCONT)
        rows = [line.split() for line in effects.read_text().splitlines()]
        ended = max(int(row[0]) for row in rows if int(row[1]) == epoch)
        switched.append((min(int(row[0]) for row in rows if int(row[1]) > epoch) - ended) / 1e6)
    return switched, replaced


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def running(root: Path) -> set[str]:
    """The nodes on which a replica runs, by its pid file and the kernel."""
    found = set()
    for state in root.glob("nodes/*/run/replicas/*/state"):
        pid, started = keeper.read_state(str(state))["service"]
        if procfs.start_time(int(pid)) == int(started):
            found.add(state.parts[-5])
    return found


MANY = """
cluster: many
modules: [jobs, labnode, replica]
nodes:
  n[1-{nodes}]: {{platform: labnode, address: "127.{{x}}.1.{{n}}", bmc: "127.{{x}}.2.{{n}}:4280"}}
desired:
  n[1-{nodes}]: {{power: on, agent: up}}
"""


def restarts(folder: Path, nodes: int, times: int = 5) -> list[tuple[float, float, float]]:
    """From the first answer of a parent that was killed until it knows that each replica runs.

    With the CPU time that this takes its process, and all processes of the nodes until it is asked.
    Nothing else may be desired afterwards than before.
    """
    site = folder / "site.yaml"
    group = "  group:g{}: {{command: sleep infinity, replicas: {}, leader: none}}\n"
    text = MANY.format(nodes=nodes)
    site.write_text(text + "".join(group.format(one, nodes) for one in range(OF_A_NODE)))
    found = []
    with lab(folder, site) as root:
        client = root / "client.json"
        await_that(client.exists, 10 * WITHIN_S)
        await_that(lambda: known(client) == nodes * OF_A_NODE, 10 * WITHIN_S, pause_s=1)
        for _ in range(times):
            time.sleep(QUIET_S)
            wished = revision(client)
            os.kill(int((root / "parent" / "parent.pid").read_text()), signal.SIGKILL)
            await_that(lambda: known(client) is not None, pause_s=0.002)
            began = time.monotonic()
            parent = int((root / "parent" / "parent.pid").read_text())
            inits = [int(one.read_text()) for one in root.glob("nodes/*/init.pid")]
            there = [*inits, *(one.pid for one in descendants(inits))]
            before = cpu_ms(there)
            used = sampled(parent, began)
            took = (known_since(client, nodes * OF_A_NODE) - began) * 1e3
            until = next(cpu for at, cpu in used if at >= took or at == used[-1][0])
            assert revision(client) == wished, "something was placed anew"
            found.append((took, until - used[0][1], cpu_ms(there) - before))
    return found


def sampled(pid: int, began: float) -> list[tuple[float, float]]:
    """What a process has used of CPUs since it began, at each time since then: both in ms."""
    found = list[tuple[float, float]]()
    while not found or found[-1][0] < KNOWN_WITHIN_S * 1e3:
        found.append(((time.monotonic() - began) * 1e3, cpu_ms([pid])))
        time.sleep(0.005)
    return found


def known_since(client: Path, count: int) -> float:
    """When the parent knew of so many replicas that each runs, on the clock of this process."""
    asked, now = asked_of(client, "/v1/entities?kind=replica"), time.monotonic()
    lasted = [one["since_ms"] for one in asked["entities"] if one["condition"] == "converged"]
    assert len(lasted) == count, f"only {len(lasted)} of {count} are known"
    return now - min(lasted) / 1e3


def cpu_ms(pids: list[int]) -> float:
    """What these processes took of CPUs so far; those that ended are left out."""
    ns = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            threads = Path(f"/proc/{pid}/task").iterdir()
            ns += sum(int((one / "schedstat").read_text().split()[0]) for one in threads)
    return ns / 1e6


def known(client: Path) -> int | None:
    """Of how many replicas the parent knows that they run; None where it does not answer."""
    try:
        return asked_of(client, "/v1/summary")["counts"].get("replica", {}).get("converged", 0)
    except (OSError, HTTPException):
        return None


def revision(client: Path) -> int:
    """That of the newest change of what is desired."""
    return int(asked_of(client, "/v1/summary")["revision"])


def asked_of(client: Path, path: str) -> dict[str, Any]:
    said = json.loads(client.read_text())
    connection = HTTPConnection(urlsplit(said["url"]).netloc, timeout=WITHIN_S)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {said['token']}"})
        return json.load(connection.getresponse())
    finally:
        connection.close()


def by_datagrams(nodes: int) -> float:
    """So many datagrams of a node's size, each answered, between two sockets of one process."""
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        began = time.perf_counter()
        for _ in range(nodes * DATAGRAMS_OF_A_NODE):
            one.sendto(bytes(DATAGRAM_BYTES), two.getsockname())
            two.sendto(two.recv(2 * DATAGRAM_BYTES), one.getsockname())
            one.recv(2 * DATAGRAM_BYTES)
        return (time.perf_counter() - began) * 1e3


def await_that(so, within_s=WITHIN_S, pause_s=0.02) -> None:
    until = time.monotonic() + within_s
    while not so():
        assert time.monotonic() < until, "waited without success"
        time.sleep(pause_s)


def started(*command: str) -> list[float]:
    return timed(lambda: subprocess.run(command, check=True), rounds=10)[0]


def main(kills: int, nodes: int) -> None:
    print(f"load average {os.getloadavg()[0]:.1f}, times in ms")
    known = hosts()
    times, where = timed(lambda: placed(known))
    took_ms(f"place {GROUPS} groups of {REPLICAS} on {NODES} nodes", times)
    took_ms("  the same by greed", timed(lambda: by_greed(known))[0])
    settled = views(known, where)
    took_ms(
        "a turn of the controller, all settled",
        timed(lambda: decide(settled, OWNER, time.time()))[0],
    )
    with tempfile.TemporaryDirectory() as folder, lab(Path(folder)) as root:
        took_ms("another leader after a kill", switches(root / "shared" / "effects", kills))
        switched, replaced = silences(root)
        took_ms("another leader after silence", switched)
        took_ms("a replacement runs after silence", replaced)
        took_ms("  starting true", started("true"))
        took_ms("  starting a Python that does nothing", started(sys.executable, "-c", ""))
    if nodes:
        with tempfile.TemporaryDirectory() as folder:
            what = f"a parent knows {nodes} x {OF_A_NODE} replicas again"
            took, parent, others = zip(*restarts(Path(folder), nodes), strict=True)
        took_ms(what, list(took))
        took_ms("  CPU time of the parent meanwhile", list(parent))
        took_ms(f"  CPU time of all nodes in {KNOWN_WITHIN_S} s", list(others))
        took_ms("  datagrams of these nodes, both ways", [by_datagrams(nodes) for _ in range(5)])
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:3]]
    main(*given, *(KILLS, LAB_NODES)[len(given) :])
