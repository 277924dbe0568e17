"""A module that knows nothing of haptera but docs/reference/frames.md: lamps, which are files.

It wants `settings` with the `folder` in which a file NAME holds `on` or `off`; it runs where its
first argument says, `parent` or `self`.
"""

import contextlib
import os
import socket
import struct
import sys
import time
from pathlib import Path

WORDS = {0xC0: None, 0xC2: False, 0xC3: True}
NUMBERS = dict(zip(range(0xCC, 0xD4), "BHIQbhiq", strict=True))
SIZES = {0xD9: "B", 0xDA: "H", 0xDB: "I", 0xDC: "H", 0xDE: "H"}


def pack(value):
    match value:
        case None | False | True:
            return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
        case int():
            return b"\xd3" + struct.pack(">q", value)
        case str():
            text = value.encode()
            return b"\xdb" + struct.pack(">I", len(text)) + text
        case list():
            return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
        case dict():
            pairs = (pack(key) + pack(one) for key, one in value.items())
            return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pairs)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form):
        return struct.unpack(f">{form}", self.take(struct.calcsize(form)))[0]

    def value(self):
        first = self.number("B")
        if first < 0x80 or first >= 0xE0:
            return first if first < 0x80 else first - 0x100
        if first in WORDS:
            return WORDS[first]
        if first in NUMBERS:
            return self.number(NUMBERS[first])
        size = self.number(SIZES[first]) if first in SIZES else first & (31 if first > 0x9F else 15)
        if first < 0x90 or first == 0xDE:
            return {self.value(): self.value() for _ in range(size)}
        if first < 0xA0 or first == 0xDC:
            return [self.value() for _ in range(size)]
        return self.take(size).decode()


class Link:
    def __init__(self, descriptor):
        self.socket = socket.socket(fileno=descriptor)
        self.stream = self.socket.makefile("rb")

    def send(self, **frame):
        content = pack(frame)
        self.socket.sendall(struct.pack(">I", len(content)) + content)

    def receive(self):
        size = self.stream.read(4)
        if len(size) < 4:
            return None
        return Reader(self.stream.read(struct.unpack(">I", size)[0])).value()


def manifest(where):
    own = {"module": "lamp", "kind": "node", "context": where}
    own["requires"] = [{"name": "platform", "values": ["lamp"]}]
    look = own | {"name": "look", "at": "power", "outcomes": ["off", "on"], "every_ms": 500}
    steps = [
        own | {"name": f"switch_{to}", "changes": [change(to)], "late_ms": 1}
        for to in ("on", "off")
    ]
    return {"name": "lamp", "version": "7", "context": where, "looks": [look], "steps": steps}


def change(to):
    return {"variable": "power", "sources": ["*"], "target": to}


def main(link, where):
    begin = link.receive()
    assert begin["op"] == "begin", begin
    sys.stdout.write(f"begins with {sorted(begin['settings'])}\n")
    sys.stdout.flush()
    link.send(op="ready", module="lamp", version="7", manifest=manifest(where))
    while (frame := link.receive()) is not None:
        if frame["op"] == "ping":
            link.send(op="pong")
        elif frame["op"] == "call":
            lamp = Path(begin["settings"]["folder"], frame["entity"]["name"])
            if frame["work"] == "look":
                at = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                state = lamp.read_text() if lamp.exists() else "off"
                link.send(op="answered", id=frame["id"], value=state, at_ns=at)
            else:
                lamp.write_text(frame["part"].removeprefix("switch_"))
                link.send(op="ended", id=frame["id"])


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # The link was closed while it answered.
        main(Link(int(os.environ["HAPTERA_LINK"])), sys.argv[1])
