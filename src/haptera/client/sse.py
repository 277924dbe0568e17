"""Server-sent events, from the bytes of a stream as they come."""

from collections.abc import Iterator
from typing import Final

import msgspec

EVENT_BYTES_MAX: Final = 16 * 1_048_576


class Sent(msgspec.Struct, frozen=True):
    """One event: its name, its data, and the place in the stream behind it, where it has one."""

    name: str
    data: str
    place: str | None


class Events:
    r"""A stream's bytes as events.

    >>> events = Events()
    >>> list(events.feed(b": still here\n\nid: 7.1\nevent: change\nda"))
    []
    >>> list(events.feed(b"ta: {}\n\n"))
    [Sent(name='change', data='{}', place='7.1')]
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._name = ""
        self._place: str | None = None
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[Sent]:
        """The events that end with these bytes.

        Raises:
            ValueError: one is too long, or no UTF-8.
        """
        looked = len(self._held)
        self._held += data
        begin = 0
        while (end := self._held.find(b"\n", max(looked, begin))) >= 0:
            line = self._held[begin:end].removesuffix(b"\r").decode()
            begin = end + 1
            if line:
                self._take(line)
            elif (sent := self._whole()) is not None:
                yield sent
        del self._held[:begin]
        if len(self._held) > EVENT_BYTES_MAX:
            raise ValueError("an event is too long")

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
            case "id":
                self._place = value
            case _:
                pass  # a comment, or what is of no interest

    def _whole(self) -> Sent | None:
        """The event that ends here, if it has data."""
        sent = Sent(self._name, "\n".join(self._data), self._place) if self._data else None
        self._name, self._place, self._data = "", None, []
        return sent
