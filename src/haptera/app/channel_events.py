"""The events for the program of a replica, from the channels that its group hears."""

from dataclasses import dataclass
from typing import Final

# The largest message, and the largest piece of a state that is handed over.
MESSAGE_BYTES_MAX: Final = 512 << 10
# The largest state: its carrier forgets the first pieces of one that is not much larger.
STATE_BYTES_MAX: Final = 192 << 20


class ChannelsError(Exception):
    """The channels cannot be used so, or the group's policy is to fail."""


@dataclass(frozen=True, slots=True)
class ChannelStart:
    """The beginning of a replica: this state, which holds its input up to this number."""

    state: bytes | None
    number: int


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """A message of the group's input; all replicas are given it by the same number.

    `source` is the group that said it, or the replica where each speaks for itself, with its
    `incarnation`; empty if it was put in from outside. `source_number` is its number there.
    """

    number: int
    source: str
    incarnation: int
    source_number: int
    epoch: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Hole:
    """Messages that are not kept any more: of the input, or of what that source said."""

    source: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class StateWanted:
    """A new sibling needs the state that this replica has after what it was given so far."""


Event = ChannelMessage | Hole | StateWanted
