"""The outputs of one replica on their way into its group's stream; pure.

All replicas of a group say the same outputs at the same positions. Each keeps what the stream does
not hold yet; the leader alone publishes it. A publication names what the stream must end with (a
compare-and-set), so that of two who believe to lead only one succeeds, and goes on from there.
Those in flight form a chain: each names the one before it, which only this epoch has written; so
where one is refused, all after it are.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# So many may be on their way to the carrier; after a refusal it begins with one again.
WINDOW_MAX: Final = 128
# So much may wait to be stored; then the program waits.
RING_MAX: Final = 4_096
RING_BYTES_MAX: Final = 16 << 20


class OutputPosition(NamedTuple):
    """The position of an output: the number of its input, and its own number since.

    Where every replica speaks for itself, its incarnation comes first; else that is (0, 0).
    """

    placement: int
    starts: int
    number: int
    nth: int

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @property
    def incarnation(self) -> int:
        """One number, which rises with each start; 0 where a leader speaks for all."""
        return self.placement << 32 | self.starts


def parse_position(text: str) -> OutputPosition:
    """Read a position as it is written in a message's header.

    >>> parse_position("0.0.7.1")
    OutputPosition(placement=0, starts=0, number=7, nth=1)

    Raises:
        ValueError: it is none.
    """
    placement, starts, number, nth = map(int, text.split("."))
    return OutputPosition(placement, starts, number, nth)


BEGINNING: Final = OutputPosition(0, 0, 0, 0)


class NumberedOutput(NamedTuple):
    """One output of the program."""

    position: OutputPosition
    data: bytes


class StreamEnd(NamedTuple):
    """The last message that the carrier holds of this writer, or of its group's leaders."""

    sequence: int
    epoch: int
    position: OutputPosition


EMPTY: Final = StreamEnd(0, 0, BEGINNING)


class PublishOutput(NamedTuple):
    """Store this, if the stream still ends as named: by a sequence, or by what goes before it."""

    output: NumberedOutput
    epoch: int
    after: int | OutputPosition


class ReadEnd(NamedTuple):
    """Read how the stream ends: what is in flight has been answered."""


class Confirm(NamedTuple):
    """The stream holds all outputs up to this one: the program need not keep them."""

    position: OutputPosition


Effect = PublishOutput | ReadEnd | Confirm


@dataclass(slots=True)
class Outbox:
    """The outputs of one replica that its group's stream does not hold yet.

    `end` is None while it is not known; `epoch` is None while this replica does not lead. While it
    is `stale`, what is in flight is awaited, then the end is read; nothing is published until then.
    """

    epoch: int | None = None
    end: StreamEnd | None = None
    ring: deque[NumberedOutput] = field(default_factory=deque)
    ring_bytes: int = 0
    in_flight: int = 0
    stale: bool = False
    _window: int = 1
    _epoch_in_flight: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.ring) >= RING_MAX or self.ring_bytes >= RING_BYTES_MAX

    def emitted(self, output: NumberedOutput) -> list[Effect]:
        """The program has said this, perhaps again after a break."""
        if self.end is not None and output.position <= self.end.position:
            return [Confirm(self.end.position)]
        if not self.ring or output.position > self.ring[-1].position:
            self.ring.append(output)
            self.ring_bytes += len(output.data)
        return self._next()

    def led(self, epoch: int | None) -> list[Effect]:
        """This replica leads under an epoch from now on, or does not."""
        if epoch == self.epoch:
            return []
        self.epoch = epoch
        # What the leader before has stored is not known until it is read.
        self.stale = True
        return self._next()

    def ended(self, end: StreamEnd) -> list[Effect]:
        """The stream was seen to end so."""
        if self.in_flight or (self.end is not None and end.sequence < self.end.sequence):
            return []
        self.stale = False
        return [*self._stored_up_to(end), *self._next()]

    def stored(self, sequence: int) -> list[Effect]:
        """The carrier holds the first one in flight that was not answered yet."""
        self.in_flight -= 1
        if self.stale:
            return self._next()  # the end tells it, once that is read
        self._window = min(2 * self._window, WINDOW_MAX)
        position = self.ring[0].position
        return [
            *self._stored_up_to(StreamEnd(sequence, self._epoch_in_flight, position)),
            *self._next(),
        ]

    def refused(self) -> list[Effect]:
        """The carrier did not store the first one in flight, as far as is known."""
        self.in_flight -= 1
        self.stale, self._window = True, 1
        return self._next()

    def check(self) -> None:
        """Assert what always holds."""
        assert 0 <= self.in_flight <= min(len(self.ring), WINDOW_MAX)
        assert self.ring_bytes == sum(len(one.data) for one in self.ring)
        positions = [one.position for one in self.ring]
        assert positions == sorted(set(positions))
        assert self.end is None or not positions or positions[0] > self.end.position

    def _stored_up_to(self, end: StreamEnd) -> list[Effect]:
        self.end = end
        while self.ring and self.ring[0].position <= end.position:
            self.ring_bytes -= len(self.ring.popleft().data)
        return [Confirm(end.position)]

    def _next(self) -> list[Effect]:
        """The effects that are due now."""
        if self.stale:
            return [] if self.in_flight else [ReadEnd()]
        if self.epoch is None or self.end is None or self.end.epoch > self.epoch:
            return []
        effects: list[Effect] = []
        while self.in_flight < min(self._window, len(self.ring)):
            at = self.in_flight
            after = self.ring[at - 1].position if at else self.end.sequence
            effects.append(PublishOutput(self.ring[at], self.epoch, after))
            self._epoch_in_flight = self.epoch
            self.in_flight += 1
        return effects
