"""Three levels of real processes, parted at each of the two gaps, in each direction and in both.

    unshare --net sh -c 'ip link set lo up && exec python -m tests.cli.parted_tree DIRECTORY'

A root, two parents below it and six agents below these. What is parted must go on: nothing is
switched, no service is another process but those that are killed or changed here, and agents mend
what is killed. What can move to another parent does, and comes back.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cli.lossy_tree import GROUP, MIDDLE, SITE, settled, start_below
from tests.cli.rig import client_of, lab, typed
from tests.kills import checker
from tests.kills.processes import Process, kill, read_process, wait_for

SIX = SITE.replace("[01-25]", "[1-3]")
NODES = [f"rack{rack}n{n}" for rack in (1, 2) for n in (1, 2, 3)]
RACK1 = NODES[:3]
# Whose services are neither killed nor changed here.
UNTOUCHED = {"rack1n3", "rack2n2", "rack2n3"}
WITHIN_S = 90
PORT_MIN = 9001
# Connections that parents between make upwards are marked, whoever sends on them.
MARKS = """\
table inet parted {{
  chain output {{
    type filter hook output priority -10;
    meta skgid {group} ip daddr {root} ct mark set 1
  }}
  chain cut {{
    type filter hook input priority 0;
  }}
}}
"""
ABOVE = {
    "up": "ct mark 1 ct direction original counter drop",
    "down": "ct mark 1 ct direction reply counter drop",
}
BELOW = {
    "up": "ip daddr {middle} counter drop",
    "down": "ip saddr {middle} counter drop",
}
WAYS = (("up",), ("down",), ("up", "down"))


class Tree:
    """The tree as seen from outside: logs, /proc, BMCs' records, and the root over REST."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._nodes = folder / ".haptera" / "nodes"
        self.client = client_of(folder)
        self.octet = json.loads(self.client.read_text())["url"].split(".")[1]
        self._port = PORT_MIN

    def settled(self) -> bool:
        return settled(self._folder, self.client, len(NODES))

    def service(self, node: str) -> Process | None:
        """The living process of the node's service, by its keeper's notes."""
        notes = (self._nodes / node / "run/services/idle/state").read_text()
        words = next(line.split() for line in notes.splitlines() if line.startswith("service "))
        process = read_process(int(words[1]))
        return process if process is not None and process.started == int(words[2]) else None

    def services(self) -> dict[str, Process | None]:
        return {node: self.service(node) for node in NODES}

    def switched(self) -> list[int]:
        """How often each node's power was switched."""
        records = (self._nodes / node / "bmc/commands.jsonl" for node in NODES)
        return [sum("verdict" in row for row in checker.read_rows(one)) for one in records]

    def moves(self, middle: str) -> list[int]:
        """How often each agent of the first rack has moved to this parent."""
        logs = ((self._nodes / node / "agent.log").read_text() for node in RACK1)
        told = f"moves to the parent at {MIDDLE[middle].format(self.octet)}:"
        return [log.count(told) for log in logs]

    def lost(self) -> int:
        """How often the parents between have lost the root."""
        logs = [(self._folder / f"{name}.log").read_text() for name in MIDDLE]
        return min(log.count("does not follow the parent") for log in logs)

    def mends(self, node: str) -> None:
        """Kill the node's service; its agent starts another one."""
        killed = wait_for("a service lives", lambda: self.service(node), WITHIN_S)
        kill(killed)
        wait_for(f"{node} mends its service", lambda: self.service(node), WITHIN_S)

    def write(self, node: str) -> Callable[[], bool]:
        """A change at the root; whether it has reached the node."""
        self._port += 1
        port = f"HAPTERA_PORT={self._port}".encode()
        code, _, errors = typed(
            "set",
            f"service:idle@{node}",
            f"port={self._port}",
            folder=self._folder,
            client=self.client,
        )
        assert code == 0, errors

        def reached() -> bool:
            process = self.service(node)
            return process is not None and port in _environment(process.pid)

        return reached


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def nft(rules: str) -> None:
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)


@contextmanager
def cut(*rules: str) -> Iterator[None]:
    """Drop what these rules say; each of them must have dropped something in the end."""
    nft("".join(f"add rule inet parted cut {rule}\n" for rule in rules))
    yield
    words = ("nft", "-j", "list", "chain", "inet", "parted", "cut")
    told = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["nftables"]
    dropped = [
        part["counter"]["packets"]
        for one in told
        for part in one.get("rule", {}).get("expr", [])
        if "counter" in part
    ]
    assert [count > 0 for count in dropped] == [True] * len(rules), dropped
    nft("flush chain inet parted cut")


def part_above(tree: Tree, ways: Sequence[str]) -> None:
    """Between the root and the parents below it."""
    lost = tree.lost()
    with cut(*(ABOVE[way] for way in ways)):
        wait_for("the root is lost", lambda: tree.lost() > lost, WITHIN_S)
        reached = tree.write("rack1n1")
        tree.mends("rack2n1")
        assert not reached()
    wait_for("a change comes down at last", reached, WITHIN_S)
    wait_for("the root sees all", tree.settled, WITHIN_S)


def part_below(tree: Tree, ways: Sequence[str]) -> None:
    """Between one parent and its agents."""
    away, back = tree.moves("m2"), tree.moves("m1")
    m1 = MIDDLE["m1"].format(tree.octet)
    with cut(*(BELOW[way].format(middle=m1) for way in ways)):
        tree.mends("rack1n2")
        wait_for("its agents move", lambda: _more(tree.moves("m2"), away), WITHIN_S)
        wait_for("a change comes by m2", tree.write("rack1n1"), WITHIN_S)
        wait_for("the root sees all by m2", tree.settled, WITHIN_S)
    wait_for("its agents come back", lambda: _more(tree.moves("m1"), back), WITHIN_S)
    wait_for("the root sees all", tree.settled, WITHIN_S)


def part_all(tree: Tree) -> None:
    """Between all parents and all agents."""
    away, middles = tree.moves("m2"), [one.format(tree.octet) for one in MIDDLE.values()]
    with cut(*(rule.format(middle=one) for rule in BELOW.values() for one in middles)):
        wait_for("agents try the next", lambda: _more(tree.moves("m2"), away), WITHIN_S)
        tree.mends("rack1n2")
        tree.mends("rack2n1")
    wait_for("the root sees all", tree.settled, WITHIN_S)


def _more(counts: Sequence[int], before: Sequence[int]) -> bool:
    return all(count > old for count, old in zip(counts, before, strict=True))


@contextmanager
def said(what: str) -> Iterator[None]:
    """Say what goes on, and how long it took."""
    began = time.monotonic()
    sys.stdout.write(f"{what}: ")
    sys.stdout.flush()
    yield
    sys.stdout.write(f"{time.monotonic() - began:.1f} s\n")


def main(folder: Path) -> None:
    (folder / "site.yaml").write_text(SIX)
    with lab(folder), ExitStack() as below:
        client = client_of(folder)
        wait_for("the root serves", client.exists, WITHIN_S)
        tree = Tree(folder)
        start_below(below, folder, client)
        with said("all is as desired"):
            wait_for("all is as desired", tree.settled, WITHIN_S)
        nft(MARKS.format(group=GROUP, root=f"127.{tree.octet}.0.1"))
        switched, services = tree.switched(), tree.services()
        for ways in WAYS:
            with said(f"cut between root and parents, {' and '.join(ways)}"):
                part_above(tree, ways)
        for ways in WAYS:
            with said(f"cut between m1 and its agents, {' and '.join(ways)}"):
                part_below(tree, ways)
        with said("cut between parents and agents"):
            part_all(tree)
        after = tree.services()
        same = {node for node, process in services.items() if after[node] == process}
        assert (same, tree.switched()) == (UNTOUCHED, switched)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
