"""What groups take: placing, one turn of the controller, and another leader after a kill.

    python -m benchmarks.groups [KILLS]

Placing: 200 groups of 3 over 1,000 nodes in racks and power strips that overlap, beside greed,
which looks at nothing but the least loaded. A turn: the same groups where all is settled.
A leader: the lab of examples/groups, whose leader's process is killed again and again; from its
last effect to the first of the next epoch, beside what starting a bare process and a Python takes
in the same minute. Wall-clock times in milliseconds; the load average is told with them.
"""

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from haptera.controllers.groups import decide
from haptera.controllers.replication import ReplicaHost, settle
from haptera.daemon.follow_ups import OWNER
from haptera.kinds.service import Run
from haptera.model.entity import EntityId, node_id
from haptera.model.views import Condition, DesiredView, EntityView, ObservedView

NODES, GROUPS, REPLICAS, KILLS = 1_000, 200, 3, 10
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


def took_ms(what: str, times: list[float]) -> None:
    ordered = sorted(times)
    print(
        f"{what:<48} p50 {statistics.median(ordered):8.1f}  min {ordered[0]:8.1f}"
        f"  max {ordered[-1]:8.1f}  ({len(ordered)})"
    )


def timed(function, *arguments, rounds=3):
    times, found = [], None
    for _ in range(rounds):
        began = time.perf_counter()
        found = function(*arguments)
        times.append((time.perf_counter() - began) * 1e3)
    return times, found


@contextmanager
def lab(folder: Path) -> Iterator[Path]:
    site = ROOT / "examples" / "groups" / "site.yaml"
    command = [sys.executable, "-m", "haptera", "lab", "--site", str(site), "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield folder / ".haptera" / "effects"
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


def await_that(so) -> None:
    until = time.monotonic() + WITHIN_S
    while not so():
        assert time.monotonic() < until, "waited without success"
        time.sleep(0.02)


def started(*command: str) -> list[float]:
    return timed(lambda: subprocess.run(command, check=True), rounds=10)[0]


def main(kills: int) -> None:
    print(f"load average {os.getloadavg()[0]:.1f}, times in ms")
    known = hosts()
    times, where = timed(placed, known)
    took_ms(f"place {GROUPS} groups of {REPLICAS} on {NODES} nodes", times)
    took_ms("  the same by greed", timed(by_greed, known)[0])
    settled = views(known, where)
    took_ms("a turn of the controller, all settled", timed(decide, settled, OWNER)[0])
    with tempfile.TemporaryDirectory() as folder, lab(Path(folder)) as effects:
        took_ms("another leader after a kill", switches(effects, kills))
        took_ms("  starting true", started("true"))
        took_ms("  starting a Python that does nothing", started(sys.executable, "-c", ""))
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else KILLS)
