"""The input of one replica, in order; pure: stored messages in, events for its program out.

The input of a group is one stream, so a message has one number for all replicas. What was said by
other groups keeps its number in their streams beside it. Both count without a gap: where one is
missing, the stream's limits have passed it, and the program is informed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from haptera.app.channel_events import ChannelMessage, Hole
from haptera.modules.replica.channels.outbox import OutputPosition


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as the carrier holds it.

    `group` and `at` are where it was said and its number there; without them it was put in from
    outside. `rank` is None where a leader spoke for its group.
    """

    sequence: int
    data: bytes
    group: str = ""
    at: int = 0
    rank: int | None = None
    epoch: int = 0
    position: OutputPosition | None = None

    @property
    def source(self) -> str:
        return self.group if self.rank is None else f"{self.group}.{self.rank}"

    @property
    def incarnation(self) -> int:
        return 0 if self.position is None else self.position.incarnation


@dataclass(slots=True)
class Inbox:
    """The position of one replica: the number of its input, and of each group's output."""

    number: int = 0
    heard: dict[str, int] = field(default_factory=dict)

    @classmethod
    def after(cls, number: int, heard: Mapping[str, int]) -> "Inbox":
        """Go on after a message, having heard so much of each group."""
        return cls(number, dict(heard))

    def stored(self, one: StoredMessage) -> Iterator[ChannelMessage | Hole]:
        """The program is given what the carrier holds next; nothing where it had that."""
        if one.sequence <= self.number:
            return
        if one.sequence > self.number + 1:
            yield Hole("", self.number + 1, one.sequence - 1)
        self.number = one.sequence
        if one.group:
            last = self.heard.get(one.group, 0)
            if one.at <= last:
                return  # the carrier took it over twice
            if one.at > last + 1:
                yield Hole(one.group, last + 1, one.at - 1)
            self.heard[one.group] = one.at
        yield ChannelMessage(one.sequence, one.source, one.incarnation, one.at, one.epoch, one.data)
