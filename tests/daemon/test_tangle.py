"""A real parent with a kind of twenty entangled variables: its hellos are on time all the while."""

import os
import queue
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from haptera.core.decide.plan_queue import PLANNED
from haptera.core.sync.peers import LOST_AFTER
from haptera.daemon.agent import parse_invitation
from haptera.daemon.parts import HELLO_PORT
from haptera.daemon.settings import ParentSettings
from haptera.kinds import KINDS
from haptera.kinds.brought import KINDS_GROUP
from haptera.model.changes import Declare, SetDesired
from haptera.model.declared.packing import schema_digest
from haptera.model.effects import Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Unwritten, Written
from haptera.model.messages import Message
from haptera.model.parts import Context
from haptera.modules import load
from haptera.planner.domain.bars import NO_BARS
from haptera.planner.domain.domain import compile_class
from haptera.planner.plan_query import answer, query_of, search_for
from haptera.runtime import clock
from haptera.runtime.processes.places import ModulePlace
from haptera.runtime.store.store import STATE_FILE, Store
from haptera.wire.updates import Codec
from tests.cli.rig import client_of
from tests.daemon.tangle_module import GOAL, START, module
from tests.faults.rig import NODE_HOST, PARENT_HOST, Bmc, Child, Parent, join
from tests.kills.processes import Process, descendants, kill
from tests.lab.rig import ROOT, WAIT_S_MAX, wait_for
from tests.planner.tangle import KIND, TANGLE

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(480)]

OWN = ModulePlace("m", Context.PARENT, str(ROOT), "tests.daemon.tangle_module:module")
TANGLED = EntityId("k", "tangled", None)
NODE = node_id("n1")
# As in a lab: a parent doubts a child whose hello is a fifth of this late, and asks it.
HELLO_MS = 1_000
# A search that is over before so many hellos have come shows nothing.
HELLOS_MIN = 3
# A search that lets all else go first.
PLAN_WITHIN_S = 120
# After so many hellos of its own with none from its parent, a child takes it to be lost.
GAP_MAX = LOST_AFTER // 10


@dataclass
class Listening(Thread):
    """A child that says hello at each H, and counts what its parent says between.

    Where the machine lets it say one `late`, its parent rightly doubts it.
    """

    child: Child
    heard: int = 0
    gap: int = 0
    gap_max: int = 0
    probes: int = 0
    late: int = 0
    over: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        super().__init__()

    __hash__ = Thread.__hash__

    def run(self) -> None:
        hello_at = clock.now_ns()
        while not self.over.is_set():
            if (late_ns := clock.now_ns() - hello_at) >= 0:
                self.late += late_ns > HELLO_MS * 1_000_000 // 10
                hello_at = clock.now_ns() + HELLO_MS * 1_000_000
                self.say_hello()
            left_s = max(0, hello_at - clock.now_ns()) / 1e9
            select.select([self.child.socket], [], [], min(left_s, 0.05))
            for message in self.child.hear():
                self.hear(message)

    def say_hello(self) -> None:
        self.gap += 1
        self.gap_max = max(self.gap, self.gap_max)
        self.child.say_hello()

    def hear(self, message: Message) -> None:
        self.heard += 1
        self.gap = 0
        self.probes += message.probe


@contextmanager
def tangled(home: Path) -> Iterator[tuple[Parent, Listening]]:
    """The parent, and a child of it that listens."""
    bmc = Bmc()
    with bmc.serving():
        prepare(home / ".haptera" / "parent", bmc)
        with served(home, bmc) as parent, enrolled(bmc) as child:
            listening = Listening(child)
            listening.start()
            try:
                yield parent, listening
            finally:
                listening.over.set()
                listening.join()


def prepare(directory: Path, bmc: Bmc) -> None:
    """Write down what is desired, as a parent that ran before would have."""
    done: queue.SimpleQueue[Written | Unwritten] = queue.SimpleQueue()
    changes = (
        Declare(NODE, {"platform": "labnode", "bmc": bmc.address}, "user:x"),
        SetDesired(NODE, "power", "on", "user:x"),
        SetDesired(NODE, "agent", "up", "user:x"),
        Declare(TANGLED, {}, "user:x"),
    )
    directory.mkdir(parents=True)
    store = Store.open(directory / STATE_FILE, deliver=done.put, wall_s=clock.wall_s)
    with closing(store):
        store.submit(Write(1, changes))
        assert isinstance(done.get(), Written)


def packaged(home: Path) -> Path:
    """A folder in which a package is installed that brings the kind."""
    folder = home / "packages"
    about = folder / "tangle-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tangle\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{KINDS_GROUP}]\nk = tests.planner.tangle:KIND\n")
    return folder


@contextmanager
def served(home: Path, bmc: Bmc) -> Iterator[Parent]:
    settings = ParentSettings(
        str(home / ".haptera" / "parent"),
        PARENT_HOST,
        str(client_of(home)),
        "tangled",
        modules=("labnode",),
        own=(OWN,),
        hello_ms=HELLO_MS,
    )
    command = [sys.executable, "-m", "tests.daemon.tangled", msgspec.json.encode(settings)]
    before = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, (str(ROOT), str(packaged(home)), before)))
    with (home / "serve.out").open("w") as out:
        process = subprocess.Popen(command, stderr=out, env={**os.environ, "PYTHONPATH": path})
    try:
        wait_for(lambda: client_of(home).exists() or process.poll() is not None)
        assert process.poll() is None, (home / "serve.out").read_text()
        yield Parent(home, process.pid, {"n1": bmc})
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(WAIT_S_MAX)
    assert (code, "Traceback" in (home / "serve.out").read_text()) == (0, False)


@contextmanager
def enrolled(bmc: Bmc) -> Iterator[Child]:
    """The node n1, with nobody but the test on it."""
    kinds = [*KINDS.values(), KIND]
    manifests = (load("labnode").manifest(), module.manifest())
    parts = [part for manifest in manifests for part in manifest.parts]
    order = wait_for(lambda: next(iter(bmc.orders), None))
    invitation = parse_invitation(msgspec.json.encode(order["boot"]))
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as bound:
        bound.bind((NODE_HOST, HELLO_PORT))
        bound.setblocking(False)
        codec = Codec(kinds, schema_digest(kinds, parts))
        yield Child(invitation, join(invitation), bound, codec)


def verdict() -> str:
    """What the planner says with a worker's budget, asked right here."""
    domain = compile_class(TANGLE)
    question = query_of(domain, domain.start(START, {}), GOAL, NO_BARS)
    found = answer(search_for(question, 1, 0)).answer
    reason = getattr(found, "reason", None)
    assert reason is not None, "there is a chain: this is no adversary any more"
    return str(reason.text)


def worker(parent: Parent) -> Process:
    """The process that searches."""
    return wait_for(
        lambda: next((one for one in descendants(parent.pid) if one.comm == "planner"), None)
    )


def stands(why: str) -> Callable[[Any], bool]:
    return lambda view: (view["entity"], view["why"]) == (str(TANGLED), why)


def desire_all(parent: Parent, child: Listening) -> None:
    """Ask for what takes long to plan, once all is known and hellos go to and fro."""
    wait_for(lambda: known(parent) == START)
    wait_for(lambda: child.heard)
    child.gap_max = 0
    parent.desire(TANGLED, **GOAL)


def known(parent: Parent) -> dict[str, str]:
    observed = parent.view(str(TANGLED))["observed"]
    return {name: one["value"] for name, one in observed.items()}


def test_a_tangle_is_answered_honestly_while_hellos_stay_on_time_though_a_worker_is_killed(
    tmp_path: Path,
) -> None:
    honest = verdict()
    again = "is being planned again: the planner's worker killed by SIGKILL"
    with tangled(tmp_path) as (parent, child), parent.listening() as stream:
        desire_all(parent, child)
        stream.until(stands(PLANNED))
        assert kill(worker(parent))
        stream.until(stands(again))
        before = child.heard
        stream.until(stands(honest), within_s=PLAN_WITHIN_S)
        assert child.heard - before >= HELLOS_MIN
        assert child.gap_max <= GAP_MAX
        assert child.probes <= child.late
        assert parent.view(str(NODE))["observed"]["agent"]["known"]
