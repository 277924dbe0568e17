"""One peer of the socket for datagrams: its session, and what it may say how often."""

from dataclasses import dataclass, field
from typing import Final

from haptera.wire.bucket import Bucket
from haptera.wire.seal import Opened, Session

# So many of one peer wait to be opened, as the newest.
LINE_MAX: Final = 512
# A line that loses more than so many at once, and so many a second after that, is a flood:
# nothing of it is taken for a while.
LOST_AT_ONCE_MAX: Final = 512
LOST_PER_S_MAX: Final = 256
# Of one peer: so many messages that say something new at once, and so many a second after that. Of
# what comes beyond, the newest is heard once there is room; what the others said, hellos repair.
CHANGED_AT_ONCE_MAX: Final = 512
CHANGED_PER_S: Final = 128
# Datagrams of measurements: a burst, and so many a second after it; the rest is dropped.
SAMPLES_AT_ONCE_MAX: Final = 64
SAMPLES_PER_S: Final = 16

Address = tuple[str, int]
# A datagram that waits to be opened, who sent it, and when it arrived.
Waiting = tuple[bytes, Address, int]


@dataclass(slots=True)
class PeerLines:
    """The datagrams of a peer that wait: from its address on `record`, first, and `elsewhere`.

    `authentic` is by how many more of the last ones from its address were its own than were not.
    """

    # Short and mostly empty, on each of very many links: an empty deque takes 700 bytes.
    record: list[Waiting] = field(default_factory=list)
    elsewhere: list[Waiting] = field(default_factory=list)
    lost: Bucket = field(default_factory=lambda: Bucket(LOST_AT_ONCE_MAX, LOST_PER_S_MAX))
    lost_elsewhere: Bucket = field(default_factory=lambda: Bucket(LOST_AT_ONCE_MAX, LOST_PER_S_MAX))
    authentic: int = 0

    def opened(self, *, own: bool) -> None:
        """One from its address was its own, or was not."""
        self.authentic = max(-LINE_MAX, min(self.authentic + (1 if own else -1), LINE_MAX))


@dataclass(slots=True, eq=False)
class PeerLink:
    """One peer: its session, where it is reached, and what was last said on either side.

    `boot` is the process that was last sent as `Moved`, or was saved by an earlier process of ours.
    `held` is the newest that it said beyond its budget, and when that arrived; `sent` is when which
    sequence was. What is not opened yet is in its `lines`.
    """

    name: str
    session: Session
    address: Address
    boot: int | None
    schema: int | None = None
    reads: bool = False
    heard: bytes | None = None
    told: bytes | None = None
    budget: Bucket = field(default_factory=lambda: Bucket(CHANGED_AT_ONCE_MAX, CHANGED_PER_S))
    held: tuple[Opened, int] | None = None
    # Short and mostly empty, on each of very many links: an empty deque takes 700 bytes.
    sent: list[tuple[int, int]] = field(default_factory=list)
    lines: PeerLines = field(default_factory=PeerLines)
    samples: Bucket | None = None

    def may_tell_samples(self, now: int) -> bool:
        """True if another datagram of measurements is within the peer's share."""
        if self.samples is None:
            self.samples = Bucket(SAMPLES_AT_ONCE_MAX, SAMPLES_PER_S)
        return self.samples.take(now)
