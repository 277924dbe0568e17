"""`python -m tests.testing.faulty FAULT`: a lamp that speaks the frames, wrong in this one way.

It is one process that answers in turn. What is wrong is the one line that names the fault.
"""

import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from haptera.wire.frame import Reject
from haptera.wire.ipc import Frames, encode_frame

FAULT = sys.argv[1] if __name__ == "__main__" else "none"
NEVER_S = 1_000_000
NARROW_BYTES, CALLS_FEW = 65_536, 20


def main() -> None:
    link = socket.socket(fileno=int(os.environ["HAPTERA_LINK"]))
    lamp = Lamp(link)
    if FAULT == "eager":
        lamp.ready()
    frames = Frames()
    while data := received(link):
        if FAULT == "hasty" and Frames().feed(data) == []:
            raise SystemExit("half a frame")
        if FAULT == "narrow" and len(data) >= NARROW_BYTES:
            raise SystemExit("too much at once")
        fed = frames.feed(data)
        if isinstance(fed, Reject):
            if FAULT in ("patient", "patient-at-rubbish"):
                time.sleep(NEVER_S)
            raise SystemExit("no frame")
        for frame in fed:
            lamp.take(frame)
    if FAULT == "immortal":
        time.sleep(NEVER_S)


def received(link: socket.socket) -> bytes:
    try:
        return link.recv(1 << 20)
    except ConnectionError:
        return b""


class Lamp:
    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.begun = False
        self.calls = 0
        self.cancelled_call: int | None = None
        self.known: set[int] = set()
        self.names: set[str] = set()
        self.lit = Path("/nonexistent")
        self.alone: socket.socket | None = None

    def say(self, **frame: Any) -> None:
        try:
            self.link.sendall(encode_frame(frame))
        except ConnectionError:
            sys.exit()

    def ready(self) -> None:
        self.say(op="ready", module="lamp", version="1", manifest=manifest())

    def take(self, frame: dict[str, Any]) -> None:
        if not self.begun:
            self.begin(frame)
        elif FAULT == "strict" and frame.keys() & {"new"}:
            raise SystemExit("a key that I do not know")
        elif frame["op"] == "ping":
            if FAULT == "staring" and self.cancelled_call is not None:
                self.say(op="sighted", id=self.cancelled_call, value="off", at_ns=now())
            if FAULT != "silent":
                self.say(op="pong")
        elif frame["op"] == "call":
            self.called(frame)
        elif frame["op"] == "cancel":
            self.cancelled(frame["id"])
        elif frame["op"] == "stop" and FAULT != "headlong":
            pass
        elif FAULT != "lenient":
            raise SystemExit("no such op")

    def begin(self, frame: dict[str, Any]) -> None:
        if frame["op"] != "begin" and FAULT != "anyhow":
            raise SystemExit("no begin")
        if FAULT == "chatty":
            sys.stderr.write(f"{frame}\n")
        if FAULT == "leaky":
            sys.stderr.write(f"the password is {frame['settings'].get('password')}\n")
        if FAULT == "alone":
            self.alone = socket.socket(socket.AF_UNIX)
            self.alone.bind(f"\0faulty-{os.getppid()}")
        self.begun = True
        self.lit = Path(frame.get("run_dir", "/nonexistent"), "lit")
        if FAULT != "eager":
            self.ready()

    def cancelled(self, call: int) -> None:
        if FAULT == "picky" and call not in self.known:
            raise SystemExit("I know no such call")
        if FAULT == "insistent":
            self.say(op="answered", id=call, value="off", at_ns=now())
            self.say(op="pong")
        self.cancelled_call = call

    def called(self, call: dict[str, Any]) -> None:
        if FAULT == "vague":
            call.setdefault("attributes", {})
        number, work, part = call["id"], call["work"], call["part"]
        if not isinstance(number, int) and FAULT != "vague":
            raise SystemExit("a call without a number")
        self.known.add(number)
        self.names.add(call["entity"]["name"])
        self.calls += 1
        late = call["deadline_ns"] is not None and now() > call["deadline_ns"]
        if FAULT == "few" and self.calls > CALLS_FEW:
            return
        if late and FAULT != "late":
            self.say(op="failed", id=number, text="too late", refused=FAULT != "unsure")
        elif part not in PARTS and FAULT != "obliging":
            self.say(op="failed", id=number, text="no such part", refused=True)
        elif FAULT == "lumping" and len(self.names) > 1:
            self.say(op="failed", id=number, text="one at a time", refused=False)
        else:
            self.work(number, work, part)

    def work(self, number: int, work: str, part: str) -> None:
        if work == "look":
            self.look(number)
        elif work in ("hold", "release"):
            self.hold(number, work)
        elif work == "step":
            if FAULT != "lazy":
                self.lit.write_text(part.removeprefix("switch_"))
            if FAULT == "untrue":
                self.say(op="failed", id=number, text="stopped", refused=True)
            else:
                self.say(op="ended", id=number)

    def look(self, number: int) -> None:
        value = self.lit.read_text() if self.lit.exists() else "off"
        value = "dim" if FAULT == "dim" else value
        at = 1 if FAULT == "old" else now()
        if FAULT == "grasping":
            try:
                socket.socket().bind(("127.0.0.1", 0))
            except OSError as error:
                self.say(op="failed", id=number, text=f"no port: {error.strerror}", refused=False)
                return
        if FAULT == "wordless":
            self.say(op="ended", id=number)
        else:
            self.say(op="answered", id=number, value=value, at_ns=at)
        if FAULT == "twice":
            self.say(op="answered", id=number, value=value, at_ns=at)

    def hold(self, number: int, work: str) -> None:
        if FAULT == "half-held" and work == "hold":
            self.say(op="failed", id=number, text="perhaps", refused=False)
        elif FAULT == "stuck" and work == "release":
            self.say(op="failed", id=number, text="no", refused=True)
        else:
            self.say(op="ended", id=number)


PARTS = {"look", "switch_on", "switch_off", "hold", "release"}


def manifest() -> dict[str, Any]:
    own = {"module": "lamp", "kind": "node", "context": "self"}
    look = own | {"name": "look", "at": "power", "outcomes": ["off", "on"], "watched": True}
    look |= {"within_ms": 1_000}
    if FAULT == "fickle":
        look |= {"every_ms": 1_000 + os.getpid()}
    steps = [
        own
        | {"name": f"switch_{to}", "within_ms": 1_000, "late_ms": 1, "stoppable": True}
        | {"changes": [{"variable": "power", "sources": ["*"], "target": to}]}
        for to in ("on", "off")
    ]
    if FAULT == "absurd":
        look |= {"kind": "toaster"}
    settings = [{"name": "password", "type": "text", "secret": True}]
    name = "lamp" if FAULT != "two-faced" else "torch"
    whole = {"name": name, "version": "1", "context": "self", "gate": True}
    return whole | {"looks": [look], "steps": steps, "settings": settings}


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    main()
