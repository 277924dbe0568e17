import os
import random
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.kills import checker
from tests.kills.processes import Process, kill, wait_for
from tests.kills.rig import NODES, STEP_WITHIN_S, Lab, go_on, stop_process
from tests.kills.writer import Api, Writer

# Another seed orders the kills and their victims anew: HAPTERA_KILL_SEED=5 pytest tests/kills
SEED = int(os.environ.get("HAPTERA_KILL_SEED", "1"))
HEAL_WITHIN_S = 90
# A kill lands at any moment of what was set going before it.
PAUSE_S_MAX = 0.6
# Killed while an intent is durable and its command not sent, the module standing still.
BETWEEN = ["parent"] * 5 + ["labnode"] * 4 + ["parent's zygote"] * 3
# Killed at any other moment, while chains are under way.
PLAIN = (
    ["parent"] * 3
    + ["labnode"] * 2
    + ["parent's zygote"]
    + ["agent"] * 4
    + ["agent's zygote"] * 2
    + ["service"] * 3
    + ["keeper"] * 3
)
ON_A_NODE = {"agent", "agent's zygote", "service", "keeper"}


class Killer:
    """Goes through the kills in a seeded order; `done` counts them."""

    def __init__(self, lab: Lab, rng: random.Random) -> None:
        self._lab = lab
        self._rng = rng
        self.done: Counter[str] = Counter()
        self.too_late = 0

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.done.items()))
        return f"{self.done.total()} kills ({kinds}), {self.too_late} came too late"

    def kill_all(self) -> None:
        schedule = [(kind, True) for kind in BETWEEN] + [(kind, False) for kind in PLAIN]
        self._rng.shuffle(schedule)
        for kind, between in schedule:
            if between:
                while not self._kill_between(kind):
                    self.too_late += 1
                self.done[f"{kind} between"] += 1
            else:
                while not self._kill_plainly(kind):
                    pass
                self.done[kind] += 1

    def _kill_between(self, kind: str) -> bool:
        """Kill after an intent is durable and before its command is sent; False: it was sent."""
        node = self._settled_node()
        parent = self._lab.parent()
        module = self._lab.module(parent, "labnode")
        victim = self._on_parent(kind, parent)
        self._lab.cut(node)
        intent = self._await_intent(node)
        if not stop_process(module):
            return False
        try:
            return not self._lab.taken(node, intent) and kill(victim)
        finally:
            go_on(module)

    def _await_intent(self, node: str) -> str:
        """As soon as it is there: its command follows within milliseconds."""
        deadline = time.monotonic() + STEP_WITHIN_S
        while (intent := self._lab.intent(node)) is None:
            assert time.monotonic() < deadline, f"no intent for {node}"
        return intent

    def _kill_plainly(self, kind: str) -> bool:
        """Kill while something heals; False: the victim was gone already."""
        if kind in ON_A_NODE:
            victim = self._on_node(kind, self._settled_node())
        else:
            self._lab.cut(self._settled_node())
            victim = self._on_parent(kind, self._lab.parent())
        time.sleep(self._rng.uniform(0, PAUSE_S_MAX))
        return victim is not None and kill(victim)

    def _on_parent(self, kind: str, parent: Process) -> Process:
        match kind:
            case "labnode":
                return self._lab.module(parent, "labnode")
            case "parent's zygote":
                return self._lab.zygote(parent, "labnode")
            case _:
                return parent

    def _on_node(self, kind: str, node: str) -> Process | None:
        """The victim; every other time its service is killed first, so that it has work to do."""
        agent = self._lab.agent(node)
        service = wait_for("there is a service", lambda: self._lab.service(node), STEP_WITHIN_S)
        match kind:
            case "agent":
                victim: Process | None = agent
            case "agent's zygote":
                victim = self._lab.zygote(agent, "service")
            case "service":
                victim = self._lab.module(agent, "service")
            case _:
                victim = self._lab.keeper(node)
        if kind != "keeper" and self._rng.random() < 0.5:
            kill(service)
        return victim

    def _settled_node(self) -> str:
        """Any node that has power and nothing under way; the others go on healing meanwhile."""

        def find() -> str | None:
            settled = [node for node in NODES if self._lab.settled(node)]
            return self._rng.choice(settled) if settled else None

        return wait_for("a node is settled", find, HEAL_WITHIN_S)


@pytest.mark.slow
@pytest.mark.net
@pytest.mark.timeout(400)
def test_thirty_kills_lose_no_write_and_send_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, writes, begun = Lab(tmp_path), tmp_path / "writes.jsonl", time.monotonic()
    killer = Killer(lab, random.Random(SEED))
    with lab.running(), closing(lab.api()) as api, closing(lab.api()) as writing:
        writer = Writer(writing, writes, NODES, SEED)
        with writer.running():
            killer.kill_all()
        left = _await_healed(lab, api)
        status = lab.stop()
        survivors = lab.leftovers()
    with capsys.disabled():
        took_s = time.monotonic() - begun
        sys.stdout.write(f"\nseed {SEED}: {killer}; {writer}; {took_s:.0f} s; left: {left}\n")
    found = checker.check(writes, lab.state, {node: lab.commands(node) for node in NODES})
    assert (left, found, writer.refused) == ([], [], []), f"seed {SEED}"
    assert (status, survivors) == (0, []), f"seed {SEED}"
    assert (killer.done.total(), writer.unanswered > 0) == (30, True), f"seed {SEED}"


def _await_healed(lab: Lab, api: Api) -> list[str]:
    """What is not as desired when the time is over, or nothing as soon as all is."""
    deadline = time.monotonic() + HEAL_WITHIN_S
    while (left := lab.unhealed(api)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
