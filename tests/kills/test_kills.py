import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from tests.kills import checker
from tests.kills.processes import Process, kill, wait_for
from tests.kills.rig import NODES, Lab, is_at_work, stopped
from tests.kills.writer import Api, Writer

# Another seed orders the kills and their victims anew: HAPTERA_KILL_SEED=5 pytest tests/kills
SEED = int(os.environ.get("HAPTERA_KILL_SEED", "2"))
# So many of the kills below; the night has them all.
KILLS = int(os.environ.get("HAPTERA_KILLS", "20"))
HEAL_WITHIN_S = 180
# A kill lands at any moment of what was set going before it.
PAUSE_S_MAX = 0.6
# From a command to its effect; all within the two seconds that labnode's steps declare.
QUICK_MS, SLOW_MS = 200, 1_700
# Killed while an intent is durable and its effect not begun, the module standing still.
BETWEEN = 3 * (
    ["parent"] * 4
    + ["labnode"] * 3
    + ["parent's zygote"] * 3
    + ["agent"] * 2
    + ["agent's zygote"]
    + ["service"]
)
# Killed at any other moment, while chains are under way.
PLAIN = 10 * (
    ["parent"] * 3
    + ["labnode"] * 2
    + ["parent's zygote"]
    + ["agent"] * 3
    + ["agent's zygote"]
    + ["service"] * 2
    + ["keeper"] * 4
)
# So long an intent is looked for.
INTENT_WITHIN_S = 10
# Not killed: the module goes on when its step's time is over, and must not act any more.
STALL_S, STALLS = 2.2, 2
ALL = len(BETWEEN + PLAIN) + STALLS
# Among so many kills there are writes that nobody answers.
MANY = 100
ON_A_NODE = {"agent", "agent's zygote", "service", "keeper"}
Found = TypeVar("Found")


# For each kill there are so many acknowledged writes and steps, which is 20 and 5 a second where a
# kill takes 1.2 seconds. A slow machine has fewer: there, power is cut until there are so many.
COUNTED = {"kills": 1, "writes": 24, "steps": 6}
CUTS_MAX = 10 * KILLS


class Killer:
    """Goes through the kills in a seeded order; `done` counts them.

    `dropped` are nodes with the ids of commands that were meant, and may no longer be sent.
    """

    def __init__(self, lab: Lab, writer: Writer) -> None:
        self._lab = lab
        self._writer = writer
        self._rng = random.Random(SEED)
        self._steps_before = lab.steps()
        self.done: Counter[str] = Counter()
        self.dropped: list[tuple[str, str]] = []
        self.too_late = self.cuts = 0
        self.rates = ""

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.done.items()))
        more = f"{self.too_late} came too late; {self.cuts} cuts more"
        return f"{kinds}; {more}; {self._writer}; {self.rates}"

    def kill_all(self) -> None:
        """All of them; then power is cut until there were as many writes and steps as asked for."""
        began = time.monotonic()
        schedule: list[tuple[str, Callable[[], bool]]] = [
            *((f"{kind} between", partial(self._kill_between, kind)) for kind in BETWEEN),
            *((kind, partial(self._kill_plainly, kind)) for kind in PLAIN),
            *[("", self._stall)] * STALLS,
        ]
        self._rng.shuffle(schedule)
        del schedule[KILLS:]
        for name, attempt in schedule:
            while not attempt():
                self.too_late += 1
            self.done.update([name] if name else [])
        for _ in range(CUTS_MAX):
            if self.short_of() == []:
                break
            node = self._settled_node()
            self._lab.set_delay(node, QUICK_MS)
            self._lab.cut(node)
            self.cuts += 1
        took_s = time.monotonic() - began
        self.rates = ", ".join(
            f"{count} {name} ({count / took_s:.1f}/s)"
            for name, count in zip(COUNTED, self.counts(), strict=True)
        )

    def short_of(self) -> list[str]:
        """What there is not enough of."""
        return [
            f"{count} {name}"
            for (name, each), count in zip(COUNTED.items(), self.counts(), strict=True)
            if count < each * (min(KILLS, ALL) - STALLS)
        ]

    def counts(self) -> tuple[int, int, int]:
        """Kills, acknowledged writes, and steps, until now."""
        steps = self._lab.steps() - self._steps_before
        return self.done.total(), self._writer.acknowledged, steps

    def _kill_between(self, kind: str) -> bool:
        """Kill after an intent is durable and before its effect begins; False: it had begun."""
        node = self._settled_node()
        if kind in ON_A_NODE:
            victim = self._on_node(kind, node)
            with self._service_stopped(node) as begun:
                return not begun and kill(victim)
        parent = self._lab.parent()
        victim = self._on_parent(kind, parent)
        with self._labnode_stopped(parent, node) as unsent:
            return unsent is not None and kill(victim) and self._drop(node, unsent)

    def _stall(self) -> bool:
        node = self._settled_node()
        with self._labnode_stopped(self._lab.parent(), node) as unsent:
            if unsent is None:
                return False
            time.sleep(STALL_S)
            return self._drop(node, unsent)

    def _drop(self, node: str, command: str) -> bool:
        self.dropped.append((node, command))
        return True

    @contextmanager
    def _labnode_stopped(self, parent: Process, node: str) -> Iterator[str | None]:
        """The node is without power; the durable intent, or None if its command was sent."""
        module = self._lab.module(parent, "labnode")
        self._lab.set_delay(node, QUICK_MS)
        self._lab.cut(node)
        intent = self._await(lambda: self._lab.intent(node))
        with stopped(module):
            yield None if intent is None or self._lab.taken(node, intent) else intent

    @contextmanager
    def _service_stopped(self, node: str) -> Iterator[bool]:
        """A service was killed, the agent's intent is durable; whether a start has begun."""
        module = self._lab.module(self._lab.agent(node), "service")
        kill(self._service(node))
        self._await(lambda: self._lab.agent_means_something(node, "web"))
        with stopped(module):
            still = self._lab.agent_means_something(node, "web")
            yield not still or self._lab.service(node) is not None or is_at_work(module)

    def _await(self, find: Callable[[], Found | None]) -> Found | None:
        """Without a pause, unlike `wait_for`: the effect follows its intent in milliseconds.

        None is one that came and went unseen, on a busy machine; the next try begins healed.
        """
        deadline = time.monotonic() + INTENT_WITHIN_S
        while not (found := find()) and time.monotonic() < deadline:
            pass
        return found

    def _kill_plainly(self, kind: str) -> bool:
        """Kill while something heals; False: the victim was gone already."""
        node = self._settled_node()
        if kind in ON_A_NODE:
            victim = self._on_node(kind, node)
            # Else the writes alone give the agent work, now and then.
            if self._rng.random() < 0.5:
                kill(self._service(node))
        else:
            victim = self._on_parent(kind, self._lab.parent())
            self._lab.set_delay(node, QUICK_MS)
            self._lab.cut(node)
            # Long enough for the command to be in flight still when the next process is there.
            self._lab.set_delay(node, SLOW_MS)
        time.sleep(self._rng.uniform(0, PAUSE_S_MAX))
        return kill(victim)

    def _on_parent(self, kind: str, parent: Process) -> Process:
        match kind:
            case "labnode":
                return self._lab.module(parent, "labnode")
            case "parent's zygote":
                return self._lab.zygote(parent, "labnode")
            case _:
                return parent

    def _on_node(self, kind: str, node: str) -> Process:
        if kind == "keeper":
            return wait_for("a keeper lives", lambda: self._lab.keeper(node), HEAL_WITHIN_S)
        agent = self._lab.agent(node)
        match kind:
            case "service":
                return self._lab.module(agent, "service")
            case "agent's zygote":
                return self._lab.zygote(agent, "service")
            case _:
                return agent

    def _service(self, node: str) -> Process:
        return wait_for("a service lives", lambda: self._lab.service(node), HEAL_WITHIN_S)

    def _settled_node(self) -> str:
        """Any node that has power and nothing under way; the others go on healing meanwhile."""

        def find() -> str | None:
            settled = [node for node in NODES if self._lab.settled(node)]
            return self._rng.choice(settled) if settled else None

        return wait_for("a node is settled", find, HEAL_WITHIN_S)


@pytest.mark.slow
@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_kills_lose_no_write_and_send_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, writes, begun = Lab(tmp_path), tmp_path / "writes.jsonl", time.monotonic()
    with lab.running(), closing(lab.api()) as api, closing(lab.api()) as writing:
        writer = Writer(writing, writes, NODES, SEED)
        killer = Killer(lab, writer)
        with writer.running():
            killer.kill_all()
        short_of = killer.short_of()
        left = _await_healed(lab, api)
        status = lab.stop()
        survivors = lab.leftovers()
    with capsys.disabled():
        took_s = time.monotonic() - begun
        sys.stdout.write(f"\nseed {SEED}: {killer}; {took_s:.0f} s; left: {left}\n")
    commands, starts = ({node: file(node) for node in NODES} for file in (lab.commands, lab.beats))
    found = checker.check(writes, lab.state, commands, starts)
    found += [f"late: {one}" for one in killer.dropped if lab.was_sent(*one)]
    assert (left, found, writer.refused) == ([], [], []), f"seed {SEED}"
    assert (status, survivors) == (0, []), f"seed {SEED}"
    assert short_of == [], f"seed {SEED}"
    assert writer.unanswered > 0 or KILLS < MANY, f"seed {SEED}"


def _await_healed(lab: Lab, api: Api) -> list[str]:
    """What is not as desired when the time is over, or nothing as soon as all is."""
    deadline = time.monotonic() + HEAL_WITHIN_S
    while (left := lab.unhealed(api)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
