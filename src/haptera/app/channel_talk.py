"""The talk of a program with its channels: frames in and out, without input or output of its own.

A frame is a line of JSON and, where the line has a `size`, so many bytes after it. What is not
confirmed to be stored is kept, and said again after each break; so haptera need not keep it.
"""

import hashlib
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from haptera.app.channel_events import (
    MESSAGE_BYTES_MAX,
    STATE_BYTES_MAX,
    ChannelMessage,
    ChannelsError,
    ChannelStart,
    Event,
    Hole,
    StateWanted,
)

HEADER_BYTES_MAX: Final = 16_384
Header = dict[str, Any]


def frame(header: Header, data: bytes | None = None) -> bytes:
    """The bytes of one frame."""
    if data is None:
        return json.dumps(header).encode() + b"\n"
    return json.dumps({**header, "size": len(data)}).encode() + b"\n" + data


def parse_header(line: bytes) -> Header:
    """Read the line that a frame begins with.

    Raises:
        ConnectionError: it is none; the talk is broken off.
    """
    try:
        header = json.loads(line)
        size = header.setdefault("size", 0)
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise ConnectionError("this is no frame") from None
    if not isinstance(size, int) or not 0 <= size <= MESSAGE_BYTES_MAX:
        raise ConnectionError(f"a frame has no {size} bytes")
    return header  # type: ignore[no-any-return]


@dataclass(slots=True)
class FrameBuffer:
    """Frames, read from the bytes that have come."""

    _bytes: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def frame(self) -> tuple[Header, bytes] | None:
        """The next frame, once the whole of it has come.

        Raises:
            ConnectionError: what came is none.
        """
        end = self._bytes.find(b"\n", 0, HEADER_BYTES_MAX)
        if end < 0:
            if len(self._bytes) >= HEADER_BYTES_MAX:
                raise ConnectionError("a frame's line is too long")
            return None
        header = parse_header(bytes(self._bytes[:end]))
        whole = end + 1 + header["size"]
        if len(self._bytes) < whole:
            return None
        data = bytes(self._bytes[end + 1 : whole])
        del self._bytes[:whole]
        return header, data


@dataclass(slots=True)
class ChannelTalk:
    """The messages given to a program, and its outputs that are not confirmed."""

    number: int | None = None
    offers: bool = False
    heard: dict[str, int] = field(default_factory=dict)
    start: ChannelStart | None = None
    # Each with its number, and which one since that.
    unconfirmed: deque[tuple[int, int, bytes]] = field(default_factory=deque)
    _nth: int = 0
    # What has come of the state, and its number.
    _blob: str = ""
    _state: bytearray = field(default_factory=bytearray)

    def opening(self) -> Iterator[bytes]:
        """The first words on a new connection."""
        if self.number is None:
            self.unconfirmed.clear()
            yield frame({"op": "hello", "blob": self._blob, "have": len(self._state)})
            return
        yield frame({"op": "hello", "number": self.number, "heard": self.heard})
        if self.offers:
            yield self.offered()
        for number, nth, data in self.unconfirmed:
            yield frame({"op": "emit", "number": number, "nth": nth}, data)

    def emitted(self, data: bytes) -> bytes:
        """An output, as it is sent."""
        if len(data) > MESSAGE_BYTES_MAX:
            raise ChannelsError(f"{len(data)} bytes are more than {MESSAGE_BYTES_MAX}: split it")
        if self.number is None:
            raise ChannelsError("call start() before you emit")
        self._nth += 1
        self.unconfirmed.append((self.number, self._nth, data))
        return frame({"op": "emit", "number": self.number, "nth": self._nth}, data)

    def offered(self) -> bytes:
        """The word that this program can supply its state."""
        self.offers = True
        return frame({"op": "offer"})

    def supplied(self, state: bytes) -> Iterator[bytes]:
        """The state after what was given so far, in pieces."""
        if len(state) > STATE_BYTES_MAX:
            raise ChannelsError(f"a state of {len(state)} bytes is more than {STATE_BYTES_MAX}")
        for at in range(0, len(state), MESSAGE_BYTES_MAX):
            yield frame({"op": "piece"}, state[at : at + MESSAGE_BYTES_MAX])
        digest = hashlib.sha256(state).hexdigest()
        said = {"number": self.number, "heard": self.heard, "digest": digest, "bytes": len(state)}
        yield frame({"op": "supplied", **said})

    def received(self, header: Header, data: bytes) -> Event | None:
        """The event that a frame is for the program, where it is one.

        Raises:
            ChannelsError: haptera says that this replica cannot go on.
            ConnectionError: haptera says something else than it can.
        """
        try:
            return self._received(header, data)
        except (KeyError, TypeError) as error:
            raise ConnectionError(f"a frame lacks {error}") from None

    def _received(self, header: Header, data: bytes) -> Event | None:
        match header["op"]:
            case "message":
                return self._message(header, data)
            case "hole":
                return self._hole(header["source"], header["first"], header["last"])
            case "wanted":
                return StateWanted()
            case "confirmed":
                stored = header["number"], header["nth"]
                while self.unconfirmed and self.unconfirmed[0][:2] <= stored:
                    self.unconfirmed.popleft()
            case "failed":
                raise ChannelsError(header["why"])
            case _:
                self._recover(header, data)
        return None

    def _recover(self, header: Header, data: bytes) -> None:
        """The frames before the program begins; unknown ones are of a later haptera."""
        match header["op"]:
            case "piece":
                if header["blob"] != self._blob:
                    self._blob, self._state = header["blob"], bytearray()
                self._state += data
            case "output":  # of the sibling whose state this is
                self.unconfirmed.append((header["number"], header["nth"], data))
            case "start":
                self._begin(header)
            case _:
                pass

    def _message(self, header: Header, data: bytes) -> ChannelMessage:
        self.number, self._nth = header["number"], 0
        group, rank = header["group"], header["rank"]
        if group:
            self.heard[group] = header["source_number"]
        return ChannelMessage(
            header["number"],
            group if rank is None else f"{group}.{rank}",
            header["incarnation"],
            header["source_number"],
            header["epoch"],
            data,
        )

    def _hole(self, source: str, first: int, last: int) -> Hole:
        if source:
            self.heard[source] = last
        else:
            self.number, self._nth = last, 0
        return Hole(source, first, last)

    def _begin(self, header: Header) -> None:
        state = bytes(self._state) if header["digest"] else None
        self._blob, self._state = "", bytearray()
        if state is not None and hashlib.sha256(state).hexdigest() != header["digest"]:
            raise ConnectionError("the state came damaged")
        self.number, self.heard = header["number"], dict(header["heard"])
        self.start = ChannelStart(state, header["number"])
