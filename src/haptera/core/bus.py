"""Who is told of which changes, and how far each has heard: ordered, resumable, bounded.

A listener never holds a state, only which entities it is to be told of; whoever takes them reads
the state then, so that what is told is the latest, once.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from haptera.model.entity import EntityId
from haptera.model.news import Cursor, News, Types, Wanted
from haptera.model.views import EntityView

# Entities that one listener may be behind with; past that it overruns, and begins anew with a
# snapshot. It may always be behind with as many as its last snapshot had.
LISTENER_PENDING_MAX: Final = 10_000
# Changes kept for listeners that come back.
CHANGES_KEPT: Final = 10_000

# The number of what a snapshot holds: it is older than any change.
_OLD: Final = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """What a listener is to be told now: entities, and in what they changed.

    With `fresh` a snapshot begins: all that was heard before is to be forgotten. What is in it
    for the snapshot's sake changed in nothing. `cursor` is how far the listener has heard once it
    was told; None in the middle of a snapshot.
    """

    fresh: bool
    changes: dict[EntityId, Types]
    cursor: Cursor | None


class Told(NamedTuple):
    """What a batch comes to: how the entities are now, in what they changed, which are gone."""

    views: list[EntityView]
    types: dict[str, list[News]]
    gone: list[str]


def told(batch: Batch, view: Callable[[EntityId], EntityView | None]) -> Told:
    """What is to be told of a batch, with each entity as it is now."""
    views: list[EntityView] = []
    types: dict[str, list[News]] = {}
    gone: list[str] = []
    for entity, changed in batch.changes.items():
        if (now := view(entity)) is None:
            if News.GONE in changed:
                gone.append(str(entity))
        elif not changed or changed - {News.GONE}:
            views.append(now)
            if alive := sorted(changed - {News.GONE}):
                types[now.entity] = alive
    return Told(views, types, gone)


class Bus:
    """Changes, numbered in the order in which they are published, and all who listen.

    `epoch` is never another bus's; `entities` tells which there are now, for snapshots.
    """

    def __init__(
        self,
        epoch: str,
        entities: Callable[[], Iterable[EntityId]],
        *,
        pending_max: int = LISTENER_PENDING_MAX,
        kept_max: int = CHANGES_KEPT,
    ) -> None:
        self.pending_max = pending_max
        self._kept_max = kept_max
        self._epoch = epoch
        self._entities = entities
        self._number = _OLD
        self._floor = _OLD
        self._kept: deque[tuple[int, EntityId, Types]] = deque()
        # Alike ones are matched once.
        self._listeners: dict[Wanted, list[Listener]] = {}

    @property
    def latest(self) -> Cursor:
        return Cursor(self._epoch, self._number)

    @property
    def listeners(self) -> int:
        """How many listen."""
        return sum(map(len, self._listeners.values()))

    def has(self, cursor: Cursor) -> bool:
        """Whether all that changed after it is still known."""
        return cursor.epoch == self._epoch and self._floor <= cursor.number <= self._number

    def publish(self, entities: Sequence[EntityId], types: Sequence[Types]) -> None:
        """Tell all whom it concerns that these changed, together, each in what `types` has."""
        self._number += 1
        changes = list(zip(entities, types, strict=True))
        self._keep(changes)
        for wanted, listeners in self._listeners.items():
            if matched := _matched(wanted, changes):
                for listener in listeners:
                    listener.add(self._number, matched)

    def listen(
        self, wanted: Wanted, wake: Callable[[], None], since: Cursor | None = None
    ) -> "Listener":
        """Listen from now on, with a snapshot first, or from a cursor that this bus has.

        `wake` is called when there is something to take, where there was nothing before.
        """
        listener = Listener(self, wanted, wake)
        if since is not None:
            assert self.has(since), f"{since} was not asked for"
            listener.resume(one for one in self._kept if one[0] > since.number)
        self._listeners.setdefault(wanted, []).append(listener)
        return listener

    def leave(self, listener: "Listener") -> None:
        """It listens no more."""
        alike = self._listeners[listener.wanted]
        alike.remove(listener)
        if not alike:
            del self._listeners[listener.wanted]

    def snapshot(self, wanted: Wanted) -> list[EntityId]:
        """Which entities are wanted of those that there are now, sorted."""
        return sorted((one for one in self._entities() if one in wanted), key=str)

    def check(self) -> None:
        """Assert what must hold between any two calls."""
        assert len(self._kept) <= self._kept_max
        assert self._floor <= self._number
        for wanted, listeners in self._listeners.items():
            for listener in listeners:
                assert listener.wanted == wanted
                listener.check(self._number)

    def _keep(self, changes: Iterable[tuple[EntityId, Types]]) -> None:
        for entity, types in changes:
            if len(self._kept) == self._kept_max:
                self._floor = self._kept.popleft()[0]
            self._kept.append((self._number, entity, types))


class Listener:
    """What one listener was not told yet, in the order in which it changed first."""

    def __init__(self, bus: Bus, wanted: Wanted, wake: Callable[[], None]) -> None:
        self.wanted = wanted
        self._bus = bus
        self._wake = wake
        self._pending: dict[EntityId, tuple[int, Types]] = {}
        self._room = bus.pending_max
        self._overrun = True  # it knows nothing yet

    @property
    def ready(self) -> bool:
        """Whether there is something to take."""
        return self._overrun or bool(self._pending)

    def take(self, count_max: int) -> Batch | None:
        """So many at most of what it is to be told; None where that is nothing."""
        fresh, self._overrun = self._overrun, False
        if fresh:
            self._begin_anew()
        if not (fresh or self._pending):
            return None
        taken = list(self._pending)[:count_max]
        changes = {entity: self._pending.pop(entity)[1] for entity in taken}
        return Batch(fresh, changes, self._cursor())

    def add(self, number: int, changes: dict[EntityId, Types]) -> None:
        """These changed; each entity keeps the place of its first change that was not told."""
        if self._overrun:
            return
        idle = not self._pending
        for entity, types in changes.items():
            first, before = self._pending.get(entity, (number, types))
            self._pending[entity] = first, before | types
        if len(self._pending) > self._room:
            self._overrun = True
            self._pending.clear()
        if idle:
            self._wake()

    def resume(self, missed: Iterable[tuple[int, EntityId, Types]]) -> None:
        """Begin with these changes in place of a snapshot."""
        self._overrun = False
        for number, entity, types in missed:
            self.add(number, _matched(self.wanted, [(entity, types)]))

    def close(self) -> None:
        self._bus.leave(self)

    def check(self, number: int) -> None:
        numbers = [first for first, _ in self._pending.values()]
        assert numbers == sorted(numbers)
        assert len(numbers) <= self._room
        assert not numbers or numbers[-1] <= number
        assert not (self._overrun and numbers)

    def _begin_anew(self) -> None:
        self._pending = dict.fromkeys(self._bus.snapshot(self.wanted), (_OLD, frozenset()))
        self._room = max(self._bus.pending_max, len(self._pending))

    def _cursor(self) -> Cursor | None:
        latest = self._bus.latest
        first, _ = next(iter(self._pending.values()), (latest.number + 1, None))
        return None if first == _OLD else Cursor(latest.epoch, first - 1)


def _matched(wanted: Wanted, changes: Iterable[tuple[EntityId, Types]]) -> dict[EntityId, Types]:
    return {
        entity: types & wanted.types
        for entity, types in changes
        if not types.isdisjoint(wanted.types) and entity in wanted
    }
