"""The presence of neighbours: how long each has been silent, and the tier that this means."""

from dataclasses import dataclass, field
from enum import StrEnum
from zlib import crc32

from haptera.model.declared.remote_schema import ToldSchema
from haptera.model.entity import EntityId
from haptera.model.messages import Ask, Mark, Message, Permit, RoomAsk


class Tier(StrEnum):
    """What a neighbour's silence allows to believe."""

    FRESH = "fresh"
    SUSPECT = "suspect"
    LOST = "lost"


# In tenths of H.
SUSPECT_AFTER = 12
LOST_AFTER = 40
# A node may hold leases for so long after it sent what its parent has shown to have heard. Its
# parent, which heard that no earlier, waits for LOST_AFTER: the rest is for clocks that drift.
LEASE_FOR = 30
# In H: silent for so long, a node may be recovered where that is allowed.
DOWN_AFTER = 24
PROBE_EVERY = 1
# What a neighbour holds that has not said what it holds.
NOTHING = Mark()


@dataclass(slots=True)
class LayerExchange:
    """The progress of two neighbours towards the same copies: of the layer we send, and of theirs.

    Of ours, `said` is how far it says to hold it, `acked` the version at which we last knew it to
    be right, `tells` how often it was sent the present one, and `recalled` what it asked to be sent
    again. Our copy of its own `differs` at the same version; so many `lists` were asked for.
    """

    said: Mark = NOTHING
    acked: int = 0
    tells: int = 0
    recalled: set[EntityId] = field(default_factory=set)
    differs: bool = False
    lists: int = 0


@dataclass(slots=True)
class Peer:
    """One neighbour: `silent_since` counts our own listening time only.

    `schema` is the digest of the kinds and parts that it knows, None before it said so;
    `told_schema` what it said of these, where they differ from ours,
    once that was `sought`. It is `disbelieved` while something that is known denies that it can be
    there. `asks`, `room_asks` and `permits` are what it last said of them, in its present process.
    """

    name: str
    incarnation: int
    silent_since: int
    heard_at: int | None = None
    boot: int | None = None
    schema: int | None = None
    told_schema: ToldSchema | None = None
    sought: bool = False
    tier: Tier = Tier.FRESH
    probed: bool = False
    layers: LayerExchange = field(default_factory=LayerExchange)
    disbelieved: bool = False
    asks: tuple[Ask, ...] = ()
    room_asks: tuple[RoomAsk, ...] = ()
    permits: tuple[Permit, ...] = ()

    def heard(self, at: int) -> bool:
        """It was heard; tell whether it had been lost, or never heard before.

        Of what arrived while we did not listen, the rest of that time is nobody's silence either.
        """
        back = self.tier is Tier.LOST or self.heard_at is None
        self.heard_at = at
        self.silent_since = max(self.silent_since, at)
        self.tier = Tier.FRESH
        return back

    def hears(self, message: Message) -> None:
        """Take over what a message says of asks and permits, where it speaks of them."""
        if message.asks is not None:
            self.asks = message.asks
        if message.room_asks is not None:
            self.room_asks = message.room_asks
        if message.permits is not None:
            self.permits = message.permits

    def fresh(self, now: int, hello_ns: int) -> bool:
        """Whether it was heard so lately that what it said holds now."""
        at = self.heard_at
        return at is not None and (now - at) * 10 <= SUSPECT_AFTER * hello_ns

    def grow_silent(self, now: int, hello_ns: int) -> Tier:
        """The tier by now."""
        tenths = (now - self.silent_since) * 10 // hello_ns
        if tenths >= LOST_AFTER:
            self.tier = Tier.LOST
        elif tenths >= SUSPECT_AFTER:
            self.tier = Tier.SUSPECT
        return self.tier


def phase_ns(name: str, hello_ns: int) -> int:
    """When in each H this neighbour's hello is sent: spread, and the same each time."""
    return crc32(name.encode()) * hello_ns >> 32
