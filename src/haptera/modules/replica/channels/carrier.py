"""The carrier of channels as a replica's session needs it: streams that store, number and compare.

`NatsCarrier` is the real one; `haptera.testing.channels` has one in memory.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import msgspec

from haptera.modules.replica.channels.inbox import StoredMessage
from haptera.modules.replica.channels.outbox import NumberedOutput, PublishOutput, StreamEnd

# A carrier that does not answer for so long is broken off.
ANSWER_WITHIN_S: Final = 5.0
# A stream keeps so much, and forgets the oldest first. Its last message it never forgets.
STREAM_BYTES_MAX: Final = 256 << 20
STREAM_MESSAGES_MAX: Final = 1_000_000
_PLAIN: Final = re.compile(r"[^A-Za-z0-9_-]")
_ESCAPED: Final = re.compile(r"=([0-9a-f]{2})")


class CarrierError(Exception):
    """The carrier does not answer, or not as it should: the session ends, and another begins."""


class ChangedEndError(Exception):
    """The stream does not end as it was to; nothing was stored."""


class StreamBounds(NamedTuple):
    """The first and the last number that a stream holds; the first is one more if it is empty."""

    first: int
    last: int


class SuppliedState(msgspec.Struct, frozen=True):
    """A state that is kept whole: up to which input it goes, and where its pieces lie.

    After the pieces of the state, which has `size` bytes, come the outputs that the supplier had
    said up to there and that were not stored, each a piece: their numbers, and which one since.
    """

    blob: str
    number: int
    heard: Mapping[str, int]
    digest: str
    size: int
    outputs: Sequence[tuple[int, int]]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Voice:
    """The source of outputs: a group, or one of its replicas."""

    group: str
    rank: int | None = None

    @property
    def subject(self) -> str:
        return f"out.{token(self.group)}" + ("" if self.rank is None else f".{self.rank}")


def token(group: str) -> str:
    """A group's name where the carrier takes fewer characters than we do.

    >>> token("a.b"), group_of(token("a.b"))
    ('a=2eb', 'a.b')
    """
    return _PLAIN.sub(lambda found: f"={ord(found[0]):02x}", group)


def group_of(token: str) -> str:
    """The group whose token this is."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), token)


class Carrier(Protocol):
    """A connection of one session; each call may raise `CarrierError`."""

    async def prepare(self, group: str, hears: tuple[str, ...]) -> None:
        """Have the streams of a group: what it hears merged into one order, and what it says."""

    async def end(self, voice: Voice) -> StreamEnd:
        """The last output of this voice."""

    async def publish(self, voice: Voice, one: PublishOutput) -> int:
        """Store it, and return its number; ChangedEndError: something else was stored before."""

    async def bounds(self, group: str) -> StreamBounds:
        """The range of a group's input that is kept."""

    def heard(self, group: str, after: int) -> AsyncIterator[StoredMessage]:
        """A group's input, message by message, for ever."""

    def said(self, group: str, after: int) -> AsyncIterator[NumberedOutput]:
        """A group's outputs after this one, for ever."""

    async def supply(self, group: str, blob: str, piece: bytes) -> int:
        """Store a piece of a state, and return its number."""

    async def supplied(self, group: str, state: SuppliedState) -> None:
        """Store that a state is whole."""

    async def state(self, group: str) -> SuppliedState | None:
        """The last state that is whole."""

    def pieces(self, group: str, state: SuppliedState) -> AsyncIterator[bytes]:
        """Its pieces."""

    async def suppliers(self, group: str) -> dict[int, bool]:
        """The ranks that can supply their state, and whether each leads."""

    async def ask(self, group: str, rank: int) -> None:
        """Have a rank supply its state."""

    async def offer(
        self, group: str, rank: int, leads: Callable[[], bool], asked: Callable[[], None]
    ) -> None:
        """Answer who asks, as one that can supply its state, for as long as this lasts."""
