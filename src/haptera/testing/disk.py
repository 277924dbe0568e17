"""A store that takes its time: what is durable, and what a crash loses."""

from collections.abc import Callable

import msgspec

from haptera.model.changes import (
    Cause,
    Change,
    CloseIntent,
    Declare,
    Desired,
    Disruption,
    OpenIntent,
    SetDesired,
    Stored,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.effects import SaveDesired, Write
from haptera.model.entity import EntityId
from haptera.model.events import HandedDown, Unwritten, Written
from haptera.model.intent import Intent
from haptera.testing.clock import Clock

MS = 1_000_000
S = 1_000_000_000


class Disk:
    """The durable state of one simulated process: a plain model of `state.db`."""

    def __init__(self, clock: Clock, name: str, epoch: int) -> None:
        self._clock = clock
        self.name = name
        self.epoch = epoch
        self.revision = self.desired_revision = 0
        self.entities: dict[EntityId, StoredEntity] = {}
        self.intents: dict[str, Intent] = {}
        self.incarnations: dict[str, int] = {}
        self.enrolled: set[str] = set()
        self.disruptions: dict[str, Disruption] = {}
        # What people asked for, and when.
        self.requests: list[tuple[HandedDown, int]] = []
        # Another parent's steps may still take effect.
        self.promoted = False
        self.full = False
        self.refusing = 0.0
        self.slow_ms = 20
        self.paused_until = 0
        self.opened: dict[str, int] = {}
        self.closed: dict[str, int] = {}
        self.lost: list[int] = []
        self._life = 0
        self._free_at = 0

    def load(self) -> Stored:
        """What a new process finds; the writes under way in the old one are lost."""
        self._life += 1
        self._free_at = self.paused_until = 0
        return self._stored()

    def copy(self) -> "Disk":
        """What a standby has that followed until now: another disk, with all that is durable."""
        held, copied = self._stored(), Disk(self._clock, self.name, self.epoch)
        copied.revision, copied.desired_revision = held.revision, self.desired_revision
        copied.entities = {one.entity: one for one in held.entities}
        copied.intents = {one.id: one for one in held.intents}
        copied.incarnations = held.incarnations
        copied.enrolled = set(held.enrolled)
        copied.disruptions = dict(self.disruptions)
        copied.requests = list(self.requests)
        return copied

    def promote(self) -> None:
        """Be the store of a parent that takes over from another, in a new epoch."""
        self.epoch = self._clock.rng("epochs").getrandbits(32)
        self.promoted = True

    def outlive(self) -> None:
        """What that one began can have no effect any more."""
        self.promoted = False

    def submit(self, write: Write, done: Callable[[Written | Unwritten], None]) -> None:
        """Commit after a while and in order, unless the process dies before."""
        delay_ns = self._clock.rng(f"disk/{self.name}").randrange(1, self.slow_ms) * MS
        self._free_at = max(self._free_at, self._clock.now) + delay_ns
        self._clock.after(self._free_at - self._clock.now, self._commit, self._life, write, done)

    def note(self, request: HandedDown) -> None:
        """Have a request durable, at once: nobody hears of it before."""
        self.requests.append((request, self._clock.now))

    def noted(self) -> list[tuple[HandedDown, float]]:
        """What people asked for, and how many seconds ago."""
        return [(request, (self._clock.now - at) / S) for request, at in self.requests]

    def keep(self, effect: SaveDesired) -> None:
        """Take over an agent's desired layer."""
        self.epoch, self.revision = effect.epoch, effect.revision
        self.entities = {one.entity: one for one in effect.entities}

    def _commit(self, life: int, write: Write, done: Callable[[Written | Unwritten], None]) -> None:
        if life != self._life:
            return
        if self._clock.now < self.paused_until:
            self._clock.after(self.paused_until - self._clock.now, self._commit, life, write, done)
            return
        if self.full or self._refuses():
            done(Unwritten(write.ticket, "state.db: disk is full; nothing was changed"))
        elif write.if_revision is not None and write.if_revision < self.desired_revision:
            text = f"what is desired changed at {self.desired_revision}"
            done(Unwritten(write.ticket, text, Cause.STALE))
        else:
            for change in write.changes:
                self._apply(change)
            done(Written(write.ticket, self.revision))

    def lose(self) -> None:
        """All of it is gone but the session: an agent's journal does not survive everything."""
        self.epoch = self.revision = self.desired_revision = 0
        self.entities, self.intents = {}, {}
        self.lost.append(self._clock.now)
        self._clock.happened["journal lost"] += 1

    def _stored(self) -> Stored:
        return msgspec.convert(
            msgspec.to_builtins(
                Stored(
                    self.epoch,
                    self.revision,
                    list(self.entities.values()),
                    list(self.intents.values()),
                    dict(self.incarnations),
                    list(self.disruptions.values()),
                    sorted(self.enrolled),
                )
            ),
            Stored,
        )

    def _refuses(self) -> bool:
        return self._clock.chance(f"disk/{self.name}", "disk refuses", self.refusing)

    def _apply(self, change: Change) -> None:
        match change:
            case OpenIntent(intent):
                self.intents[intent.id] = intent
                self.disruptions |= _disruption(intent)
                self.enrolled -= _boots(intent)
                self.opened[intent.id] = self._clock.now
            case CloseIntent(id, begun):
                self.intents.pop(id, None)
                self.closed[id] = self._clock.now
                if not begun:
                    self.disruptions.pop(id, None)
            case Undeclare(entity):
                self.entities.pop(entity, None)
            case Declare(entity, attributes, owner):
                stored = self._entity(entity)
                stored.attributes, stored.owner = attributes, owner
            case SetDesired(entity, name, value, owner):
                self._entity(entity).desired[name] = Desired(value, owner)
            case UnsetDesired(entity, name):
                self._entity(entity).desired.pop(name, None)
        self.revision += 1
        if not isinstance(change, OpenIntent | CloseIntent):
            self.desired_revision = self.revision
        if isinstance(change, Declare | SetDesired | UnsetDesired):
            self._entity(change.entity).revision = self.revision

    def _entity(self, entity: EntityId) -> StoredEntity:
        return self.entities.setdefault(entity, StoredEntity(entity, {}, "", {}, 0))


def _disruption(intent: Intent) -> dict[str, Disruption]:
    if not intent.disruptive:
        return {}
    return {intent.id: Disruption(intent.entity, intent.began_at, intent.kernel_boot)}


def _boots(intent: Intent) -> set[str]:
    return {intent.entity.name} if intent.enrols else set()
