"""Very many children of one parent: a real parent, and all children in one other process.

Each child has a session and keys of its own and says hello each `HELLO_S`, evenly spread over it;
what the parent says to it counts only if its seal opens. A child that changes says that its node
is busy, or free again, and asks for an answer. The parent decides in the turn in which it hears of
it, and answers at the end of that turn how far it knows this child: that is when the change is
answered.
"""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any, Final
from uuid import UUID

from haptera.core.state.side import PARENT
from haptera.core.sync.delta import mark_digest
from haptera.daemon.parts import HELLO_PORT, catalog_of, codec_of
from haptera.kinds.node import Busy, busy
from haptera.model.entity import node_id
from haptera.model.facts import Method
from haptera.model.messages import Mark, Message, ObservedUpdate, SeenValue
from haptera.modules import BUNDLED
from haptera.runtime import clock
from haptera.wire.frame import DATAGRAM_BYTES_MAX, DatagramType, receiver_of
from haptera.wire.seal import Agreement, Greet, Opened, SealRole, Session
from haptera.wire.sync import decode, encode

# With fewer hellos, a machine that has no time keeps up: what each costs is told by itself.
HELLO_S: Final = float(os.environ.get("HELLO_S", "10"))
TICK_S: Final = 0.005
PARENT_HOST: Final = "127.0.0.1"
CHILD_HOST: Final = "127.0.0.2"
RECEIVE_BYTES: Final = 64 << 20
SO_RCVBUFFORCE: Final = 33
SECRET: Final = bytes(range(32))
ROOT: Final = Path(__file__).resolve().parents[1]


def agreement(cluster: UUID, number: int) -> Agreement:
    """What enrolment would have given the child of this number and its parent."""
    return Agreement(SECRET, cluster, UUID(int=number), 1, 2 * number, 2 * number + 1)


def name_of(number: int) -> str:
    return f"n{number:06}"


def bound(host: str) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES)
    made.bind((host, HELLO_PORT))
    return made


@dataclass(slots=True)
class Child:
    """One node: its session, and what it and its parent hold of each other.

    `changed_at` is when it changed, where its parent has not answered that yet.
    """

    name: str
    session: Session
    desired: Mark = field(default_factory=Mark)
    observed: Mark = field(default_factory=lambda: Mark(0, 0, mark_digest({})))
    update: ObservedUpdate | None = None
    changed_at: float | None = None
    heard_at: float | None = None

    def change(self) -> None:
        """Its node is busy, or free again."""
        node, version = node_id(self.name), self.observed.version + 1
        value = (Busy.FREE, Busy.BUSY)[version % 2]
        seen = {busy.name: SeenValue(value, known=True, method=Method.READ, age_ms=0, by="jobs")}
        self.update = ObservedUpdate(node, version, seen)
        self.observed = Mark(0, version, mark_digest({node: version}))
        self.changed_at = time.monotonic()


class Children:
    """All of them, over one socket."""

    def __init__(self, cluster: UUID, children: int) -> None:
        self._codec = codec_of(catalog_of(BUNDLED))
        self._all = [
            Child(name_of(one), Session(agreement(cluster, one), SealRole.CHILD, own_boot=one))
            for one in range(1, children + 1)
        ]
        self._by_index = {one.session.own_index: one for one in self._all}
        self._socket = bound(CHILD_HOST)
        self._socket.settimeout(0)
        self._opened = self._refused = 0
        self._took: list[float] = []

    def run(self, changing: float) -> dict[str, Any]:
        """Say hello in turn until standard input has a line, such a share of hellos with a change.

        Returns what came of it: when the first child and all were answered, and of each change how
        long that took.
        """
        self._hear()  # what came before
        self._opened = self._refused = 0
        self._took = []
        for child in self._all:
            child.heard_at = None
        begun, said, changes = time.monotonic(), 0, 0.0
        while not select([sys.stdin], [], [], TICK_S)[0]:
            due = int((time.monotonic() - begun) / HELLO_S * len(self._all))
            for number in range(said, due):
                child = self._all[number % len(self._all)]
                changes += changing
                if changes >= 1:
                    changes -= 1
                    child.change()
                self._say(child)
            said = due
            self._hear()
        heard = [one.heard_at for one in self._all if one.heard_at is not None]
        return {
            "said": said,
            "opened": self._opened,
            "refused": self._refused,
            "took": sorted(self._took),
            "unanswered": sum(one.changed_at is not None for one in self._all),
            "silent": len(self._all) - len(heard),
            "first_at": min(heard, default=None),
            "last_at": max(heard, default=None),
        }

    def _say(self, child: Child) -> None:
        updates = () if child.update is None else (child.update,)
        message = Message(
            *(1, 0, self._codec.schema, child.desired, child.observed),
            updates=updates,
            probe=child.changed_at is not None,
        )
        for body in encode(message, self._codec, self._codec.schema):
            self._send(child.session.seal(body))

    def _send(self, datagram: bytes) -> None:
        self._socket.sendto(datagram, (PARENT_HOST, HELLO_PORT))

    def _hear(self) -> None:
        while True:
            try:
                datagram = self._socket.recv(DATAGRAM_BYTES_MAX)
            except BlockingIOError:
                return
            index = receiver_of(datagram)
            child = self._by_index.get(index) if isinstance(index, int) else None
            match child and child.session.open(datagram, clock.now_ns()):
                case Opened(type=DatagramType.HELLO, body=body) if child is not None:
                    self._take(child, decode(body, self._codec, PARENT))
                case Greet() as greet if child is not None:
                    self._send(child.session.seal_hi(greet))
                case Opened():
                    pass
                case _:
                    self._refused += 1

    def _take(self, child: Child, message: object) -> None:
        assert isinstance(message, Message), message
        now = time.monotonic()
        self._opened += 1
        child.heard_at = child.heard_at or now
        self._codec.schema = message.schema  # as enrolment would have said
        child.desired = message.desired
        if message.observed.digest == child.observed.digest:
            child.update = None
            if child.changed_at is not None:
                self._took.append(now - child.changed_at)
                child.changed_at = None
        if message.probe:
            self._say(child)


class Crowd:
    """The children's process."""

    def __init__(self, cluster: UUID, children: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.children", str(cluster), str(children)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, changing: float = 0) -> None:
        """Say hello from now on; see `Children.run`."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{changing}\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """Fall silent; what came of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def main(cluster: str, children: str) -> None:
    """Run as each line of standard input says until the next, and tell what came of it."""
    crowd = Children(UUID(cluster), int(children))
    while line := sys.stdin.readline():
        print(json.dumps(crowd.run(float(line))), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
