"""A lab whose groups are watched from outside: by what their payload writes, and by /proc."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haptera.app.lease import start_time
from haptera.lab.tree import descendants
from tests.kills.processes import read_process, wait_for
from tests.kills.rig import Lab

PAYLOAD = Path(__file__).parent / "payload.py"
NODES = tuple(f"n{number}" for number in range(1, 7))
WITHIN_S = 60
SITE = """
cluster: scenarios
modules: [jobs, labnode, replica]
nodes:
  n[1-6]: {{platform: labnode, address: "127.{{x}}.1.{{n}}", bmc: "127.{{x}}.2.{{n}}:4280"}}
  n1: {{rack: r1, pdu: p1}}
  n2: {{rack: r1, pdu: p2}}
  n3: {{rack: r2, pdu: p2}}
  n4: {{rack: r2, pdu: p3}}
  n5: {{rack: r3, pdu: p3}}
  n6: {{rack: r4, pdu: "p4, p5"}}
desired:
  n[1-6]: {{power: on, agent: up}}
  group:ledger: {{command: COMMAND, replicas: 3, on: "n[1-6]", apart: "rack, pdu"}}
"""
FAULT_GROUPS = {
    "n1": {"r1", "p1"},
    "n2": {"r1", "p2"},
    "n3": {"r2", "p2"},
    "n4": {"r2", "p3"},
    "n5": {"r3", "p3"},
    "n6": {"r4", "p4", "p5"},
}


@dataclass(frozen=True)
class Effect:
    """A line of the effects: who acted, as what, and how often it had."""

    epoch: int
    rank: int
    node: str
    incarnation: tuple[int, int]
    pid: int
    number: int


@dataclass(frozen=True)
class Start:
    """A line of the starts: one process of a rank."""

    rank: int
    node: str
    incarnation: tuple[int, int]
    pid: int
    started: int

    @property
    def lives(self) -> bool:
        return start_time(self.pid) == self.started


class GroupLab(Lab):
    """A lab of six nodes in overlapping fault groups, with a group `ledger` of three."""

    def __init__(self, directory: Path) -> None:
        # A folder of its own: beside the lab's secrets nothing new can be written from a node.
        self.written = directory / "written"
        self.written.mkdir()
        command = json.dumps(f'"{{{{python}}}}" "{PAYLOAD}" "{self.written}"')
        super().__init__(directory, SITE.replace("COMMAND", command))

    @property
    def client(self) -> Path:
        return self.root / "client.json"

    def effects(self, group: str = "ledger") -> list[Effect]:
        return [
            Effect(int(epoch), int(rank), node, _incarnation(one), int(pid), int(number))
            for epoch, rank, node, one, pid, number in self._lines(f"{group}.effects")
        ]

    def effects_of(self, one: Start) -> list[Effect]:
        return [effect for effect in self.effects() if effect.pid == one.pid]

    def starts(self, group: str = "ledger") -> list[Start]:
        return [
            Start(int(rank), node, _incarnation(one), int(pid), int(started))
            for rank, node, one, pid, started in self._lines(f"{group}.starts")
        ]

    def refused(self, pid: int, group: str = "ledger") -> int:
        """How often a process wanted to act under an epoch that was over already."""
        return sum(int(one) == pid for (one,) in self._lines(f"{group}.refused"))

    def _lines(self, name: str) -> Iterator[list[str]]:
        path = self.written / name
        text = path.read_text() if path.exists() else ""
        return (line.split() for line in text.splitlines())

    def living(self, group: str = "ledger") -> list[Start]:
        return [one for one in self.starts(group) if one.lives]

    def view(self, entity: str) -> Any:
        with closing(self.api()) as api:
            answer = api.ask("GET", f"/v1/entities/{entity}")
        return answer[2] if answer is not None and answer[0] == 200 else {}

    def is_heard(self, node: str) -> bool:
        """True where the parent knows that the node's agent is up."""
        agent = self.view(f"node:{node}").get("observed", {}).get("agent", {})
        return (agent.get("value"), agent.get("known")) == ("up", True)

    def says(self, *words: str) -> str:
        """What the command says, whatever it exits with."""
        haptera = shutil.which("haptera", path=".venv/bin") or "haptera"
        ran = subprocess.run(
            [haptera, "--client", str(self.client), *words], capture_output=True, text=True
        )
        return ran.stdout + ran.stderr

    def until(self, what: str, so: Callable[[], object]) -> Any:
        try:
            return wait_for(what, so, WITHIN_S)
        except AssertionError as error:
            told = (self.says("why"), self.says("get", "replica"), *map(str, self.living()))
            raise AssertionError("\n".join([str(error), *told])) from error

    def apart(self, *, without: tuple[str, ...] = (), count: int = 3) -> list[Start]:
        """So many living replicas, no two in one fault group, none on these nodes."""

        def found() -> list[Start] | None:
            living = [one for one in self.living() if one.node not in without]
            groups = [group for one in living for group in FAULT_GROUPS[one.node]]
            right = len({one.rank for one in living}) == len(living) == count
            return living if right and len(groups) == len(set(groups)) else None

        return self.until(f"{count} replicas apart, none on {without}", found)

    def leads(self, *, after: int = 0) -> Effect:
        """An effect of an epoch after this one, newer than all that are there."""
        seen = len(self.effects())

        def last() -> Effect | None:
            found = self.effects()
            return found[-1] if len(found) > seen and found[-1].epoch > after else None

        return self.until(f"an epoch after {after} acts", last)

    def settle(self) -> Effect:
        """Until three run apart and one of them acts."""
        self.apart()
        return self.leads()

    def check(self) -> None:
        """No epoch acts after a later one, each has one author, and numbers its effects."""
        highest, author, number = 0, None, 0
        for one in self.effects():
            assert one.epoch >= highest, f"{one} after epoch {highest}"
            if one.epoch > highest:
                highest, author, number = one.epoch, one.pid, 0 if one.pid != author else number
            assert one.pid == author, f"{one}: epoch {highest} is of {author}"
            assert one.number == number + 1 or number == 0, f"{one} after {number}"
            number = one.number
        of_rank: dict[int, tuple[int, int]] = {}
        for start in self.starts():
            before = of_rank.get(start.rank, (0, 0))
            assert start.incarnation > before, f"{start} after incarnation {before}"
            of_rank[start.rank] = start.incarnation

    def agent_pid(self, node: str) -> bool:
        """Whether the node's agent runs."""
        path = self.root / "nodes" / node / "agent.pid"
        return path.exists() and read_process(int(path.read_text())) is not None

    def keeper_state(self, one: Start) -> Path:
        """Where the keeper of a replica wrote which process it started."""
        home = self.root / "nodes" / one.node / "run" / "replicas" / f"ledger.{one.rank}"
        return home / "state"

    def hold_before_act(self, pid: int) -> Path:
        """Have a leader stop between its look at the lease and its act, until this is removed."""
        waits, about = self.written / f"{pid}.waits", self.written / f"{pid}.about"
        waits.touch()
        self.until("it is about to act", about.exists)
        return waits

    def address(self, node: str) -> str:
        return (self.root / "nodes" / node / "address").read_text().strip()

    @contextmanager
    def cut_off(self, *nodes: str) -> Iterator[None]:
        """Drop all packets from and to these nodes."""
        table = f"haptera_{os.getpid()}"
        some = ", ".join(map(self.address, nodes))
        rules = (
            f"add table ip {table}; add chain ip {table} in"
            " { type filter hook input priority 0; };"
            f" add rule ip {table} in ip saddr {{ {some} }} drop;"
            f" add rule ip {table} in ip daddr {{ {some} }} drop"
        )
        subprocess.run(["nft", rules], check=True)
        try:
            yield
        finally:
            subprocess.run(["nft", f"delete table ip {table}"], check=True)

    @contextmanager
    def frozen(self, *nodes: str) -> Iterator[None]:
        """All processes of nodes stop in the middle of whatever they do, and go on afterwards."""
        inits = [int((self.root / "nodes" / node / "init.pid").read_text()) for node in nodes]
        pids = [*inits, *(one.pid for one in descendants(inits))]
        _send(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            _send(pids, signal.SIGCONT)


def _send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _incarnation(text: str) -> tuple[int, int]:
    placement, starts = text.split(".")
    return int(placement), int(starts)
