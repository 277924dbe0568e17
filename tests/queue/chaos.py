"""Two hundred jobs on a pool while everything fails; judged from outside.

    unshare -n python -m tests.queue.chaos DIRECTORY SECONDS lossy

As Arvados' test of its cloud dispatcher has it, with real processes: seven sizes, a quota of ten,
of each ten requests to the cloud one fails, one size cannot be had, another never comes up at
first, of each seven machines one hangs. Beyond that the parent is killed every 5 s, keepers of
jobs are, nodes freeze for longer than a lease or say that they have failed, and, if told so, 5 % of
all packets in this network namespace are lost. It imports nothing of haptera: what ran is read from
the log that jobs write, what there is from the cloud, and from /proc.
"""

import contextlib
import json
import os
import pwd
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from tests.kills.processes import Process, descendants, processes

JOBS = 200
QUOTA = 10
KILLED_EVERY_S = 5.0
FROZEN_S = 25.0
SIZES = "; ".join(
    f"t{cpus}: {cpus} cpu{'s' * (cpus > 1)}, {512 * cpus} MB, price {cpus}" for cpus in range(1, 8)
)
SITE = f"""\
cluster: chaos
modules: [jobs, labnode, service, local]
desired:
  pool:burst:
    provider: local
    at: "127.{{x}}.0.2:4281"
    sizes: "{SIZES}"
    max: {QUOTA + 2}
    price_factor: "3"
    idle_s: 4
    boot_s: 20
lab:
  cloud: {{quota: {QUOTA}, fails_every: 10, hangs_every: 7, lacks: [t3], hangs: [t5]}}
"""
# One write a line; `alive` each half a second, so that two of one job at a time are seen.
SCRIPT = """\
say() { echo "$1 $HAPTERA_JOB $HAPTERA_JOB_TOKEN $HAPTERA_NODE $EPOCHREALTIME" >>EFFECTS; }
say begin
for ((i = 0; i < $1; i++)); do sleep 0.5; say alive; done
say end
"""
LOSS = """\
table inet loss {
  chain input {
    type filter hook input priority 0;
    numgen random mod 100 < 5 drop
  }
}
"""
# What a process does in this time after a thaw its keeper could not prevent: its token is an older
# one, which whoever is written to can tell.
THAWING_S = 1.0


class Lab:
    """A lab, and what is done to it."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.root = folder / ".haptera"
        self.effects = folder / "effects"
        self.script = folder / "job.sh"
        self.script.write_text(SCRIPT.replace("EFFECTS", str(self.effects)))
        self.effects.touch()
        (folder / "site.yaml").write_text(SITE)
        self.rng = rng
        self.frozen: dict[str, tuple[float, list[int]]] = {}
        self.thawed: list[tuple[str, float]] = []
        self.done: Counter[str] = Counter()
        haptera = Path(sys.executable).with_name("haptera")
        words = [str(haptera), "lab", "--site", str(folder / "site.yaml"), "--dir", str(folder)]
        with (folder / "lab.log").open("wb") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)

    def ask(self, method: str, path: str, body: object = None) -> object:
        """Ask the parent."""
        return self.insist(
            lambda known: self.fetch(method, known["url"] + path, body, known["token"])
        )

    def cloud(self, method: str, path: str, body: object = None) -> object:
        """Ask the cloud, whose address has the parent's first two numbers."""

        def once(known: dict[str, str]) -> object:
            net = ".".join(known["url"].split("//")[1].split(".")[:2])
            return self.fetch(method, f"http://{net}.0.2:4281{path}", body, None)

        return self.insist(once)

    def insist(self, once: Callable[[dict[str, str]], object]) -> object:
        """Asked until it is answered: the parent may be dead, and packets are lost."""
        until = time.monotonic() + 60
        while True:
            try:
                return once(json.loads((self.root / "client.json").read_text()))
            except (OSError, ValueError):
                if time.monotonic() >= until:
                    raise
                time.sleep(0.1)

    def instances(self) -> list[str]:
        there = self.cloud("GET", "/instances")["instances"]  # type: ignore[index]
        return [one["name"] for one in there]

    def fetch(self, method: str, url: str, body: object, token: str | None) -> object:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        one = urllib.request.Request(url, data, headers, method=method)
        with urllib.request.urlopen(one, timeout=60) as answer:
            return json.loads(answer.read())

    def submit(self) -> None:
        """All at once; what is sent again after a lost answer is queued once, by its key."""
        for at in range(JOBS):
            cpus = self.rng.choice([1, 1, 1, 2, 2, 3, 4, 5, 7])
            spec = {
                "command": ["bash", str(self.script), str(self.rng.randrange(2, 20))],
                "size": {"cpus": cpus, "memory_mb": 100 * cpus},
                "retry": "lost",
                "user": pwd.getpwuid(os.geteuid()).pw_name,  # it writes beside the lab
            }
            body = {"spec": spec, "priority": self.rng.randrange(1, 21), "key": f"chaos-{at}"}
            self.ask("POST", "/v1/jobs", body)

    def kill_parent(self) -> None:
        self.done["parents killed"] += self.kill((self.root / "parent/parent.pid").read_text())

    def kill_keeper(self) -> None:
        """Of some job that runs."""
        states = sorted(self.root.glob("nodes/burst-*/run/queue/*/state"))
        for place in self.rng.sample(states, len(states)):
            if not place.with_name("status").exists():
                lines = (line.split() for line in place.read_text().splitlines())
                pids = [words[1] for words in lines if words[0] == "keeper"]
                self.done["keepers killed"] += self.kill(pids[0])
                return

    def freeze(self) -> None:
        """All of a node, its jobs included, for longer than their lease."""
        if self.frozen or (pids := self.node_processes()) is None:
            return
        node, tree = pids
        for pid in tree:
            send(pid, signal.SIGSTOP)
        self.frozen[node] = (time.monotonic() + FROZEN_S, tree)
        self.done["nodes frozen"] += 1

    def thaw(self, now: float) -> None:
        for node, (until, tree) in list(self.frozen.items()):
            if now >= until:
                self.thawed.append((node, time.time()))
                for pid in tree:
                    send(pid, signal.SIGCONT)
                del self.frozen[node]

    def fail_node(self) -> None:
        """A node says that it has failed."""
        runs = sorted(self.root.glob("nodes/burst-*/run/jobs"))
        if runs:
            (self.rng.choice(runs) / "failed").write_text("its disk gives errors")
            self.done["nodes failed"] += 1

    def node_processes(self) -> tuple[str, list[int]] | None:
        """A node that runs, with what descends from its chassis."""
        roots = chassis()
        if not roots:
            return None
        root = self.rng.choice(sorted(roots))
        return root.comm, [root.pid, *(one.pid for one in descendants(root.pid))]

    def kill(self, pid: str) -> int:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except (ProcessLookupError, ValueError):
            return 0
        return 1

    def lines(self) -> list[tuple[str, int, int, str, float]]:
        rows = (line.split() for line in self.effects.read_text().splitlines())
        return [
            (what, int(job), int(token), node, float(at)) for what, job, token, node, at in rows
        ]

    def close(self) -> None:
        for _, tree in self.frozen.values():
            for pid in tree:
                send(pid, signal.SIGCONT)
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def chassis() -> list[Process]:
    """Those of the pool's machines."""
    return [one for one in processes() if one.comm.startswith("chassis burst")]


def judge(lab: Lab) -> None:
    """What the jobs themselves wrote: each ended, none twice under a token, none at two places."""
    runs: dict[int, dict[int, list[tuple[str, float, str]]]] = {}
    for what, job, token, node, at in lab.lines():
        runs.setdefault(job, {}).setdefault(token, []).append((what, at, node))
    assert len(runs) == JOBS, f"{len(runs)} jobs ran"
    tokens = [token for tokens in runs.values() for token in tokens]
    assert len(tokens) == len(set(tokens)), "a token of two jobs"
    for job, by_token in runs.items():
        spans = []
        for token, said in by_token.items():
            counts = Counter(what for what, _, _ in said)
            assert counts["begin"] == 1, f"job {job} began {counts['begin']} times under {token}"
            assert counts["end"] <= 1, f"job {job} ended {counts['end']} times under {token}"
            assert len({node for _, _, node in said}) == 1, f"job {job}: {said}"
            times = [at for _, at, node in said if not just_thawed(lab, node, at)]
            if times:
                spans.append((min(times), max(times), token))
        assert any(what == "end" for said in by_token.values() for what, _, _ in said), job
        for (_, over, first), (began, _, second) in pairwise(sorted(spans)):
            assert over <= began, f"job {job}: {second} began {over - began:.2f} s before {first}"


def just_thawed(lab: Lab, node: str, at: float) -> bool:
    return any(name.endswith(node) and 0 <= at - then < THAWING_S for name, then in lab.thawed)


def run(folder: Path, within_s: float) -> None:
    rng = random.Random(12)
    began = time.monotonic()
    lab = Lab(folder, rng)
    try:
        lab.ask("GET", "/v1/health")
        lab.cloud("POST", "/create", {"name": "burst-77", "owner": "somebody", "size": "t1"})
        lab.submit()
        lasted, gap = torment(lab, began + within_s)
        settle(lab, began + within_s)
        judge(lab)
    finally:
        lab.close()
    begun = sum(what == "begin" for what, *_ in lab.lines())
    sys.stdout.write(
        f"{JOBS} jobs in {lasted:.0f} s, {begun} runs, {gap:.1f} s at most without an end;"
        f" {dict(lab.done)}\n"
    )


def torment(lab: Lab, until: float) -> tuple[float, float]:
    """Until all have ended: how long that took, and the longest time in which none did."""
    began = killed = moved = time.monotonic()
    now, gap, ended, hangs = began, 0.0, 0, True
    while ended < JOBS:
        now = time.monotonic()
        assert now < until, f"{ended} of {JOBS} ended: {lab.ask('GET', '/v1/queue')}"
        assert len(lab.instances()) <= QUOTA
        if now - killed >= KILLED_EVERY_S:
            killed = now
            lab.kill_parent()
            lab.kill_keeper()
            lab.rng.choice([lab.freeze, lab.fail_node, lab.kill_keeper])()
        if hangs and now - began > 30:
            faults = {"quota": QUOTA, "fails_every": 10, "hangs_every": 7, "lacks": ["t3"]}
            lab.cloud("POST", "/faults", faults)
            hangs = False
        lab.thaw(now)
        time.sleep(0.1)
        count = len({job for what, job, *_ in lab.lines() if what == "end"})
        if count > ended:
            gap, moved, ended = max(gap, now - moved), now, count
    lab.thaw(now + FROZEN_S)
    return now - began, gap


def settle(lab: Lab, until: float) -> None:
    """All complete by the parent's word, and nothing there any more but another's machine."""
    while True:
        counts = lab.ask("GET", "/v1/jobs?limit=1")["counts"]  # type: ignore[index]
        names = lab.instances()
        left = chassis()
        # The other's machine has a chassis, too.
        if counts == {"complete": JOBS} and names == ["burst-77"] and len(left) == 1:
            return
        assert time.monotonic() < until, (counts, names, left)
        time.sleep(0.2)


if __name__ == "__main__":
    if sys.argv[3:] == ["lossy"]:
        subprocess.run(["nft", "-f", "-"], input=LOSS.encode(), check=True)
    run(Path(sys.argv[1]), float(sys.argv[2]))
