"""The bus: for each listener the changes that it has not received; ordered, resumable, bounded.

A listener never holds a state, only the entities that changed for it; a delivery reads
the state at that moment, so that it has the latest, once.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from haptera.core.views.pending import (
    NOTHING_PENDING,
    Changes,
    EntityChange,
    Merger,
    matched,
)
from haptera.model.answers.views import EntityView
from haptera.model.entity import EntityId
from haptera.model.news import News, Types
from haptera.selectors.subscription import Cursor, Subscription

# Entities that one listener may be behind with; past that it overruns, and begins anew with a
# snapshot. It may always be behind with as many as its last snapshot had.
LISTENER_PENDING_MAX: Final = 10_000
# So many entities are asked at once whether a snapshot wants them: some 2 ms.
ASKED_MAX: Final = 1_000
# Changes kept for listeners that come back.
CHANGES_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Batch:
    """A delivery to a listener: entities, and in what they changed.

    With `fresh` a snapshot begins: all that was heard before is to be forgotten. What is in it
    for the snapshot's sake changed in nothing. `cursor` is how far the listener has heard once it
    was sent; None in the middle of a snapshot. With the last batch the picture is `whole`: nothing
    is left that had changed when its first one was taken, or the last of what a snapshot found.
    """

    fresh: bool
    changes: Mapping[EntityId, Types]
    cursor: Cursor | None
    whole: bool = True


class BusNews(NamedTuple):
    """What a batch comes to: how the entities are now, in what they changed, which are gone.

    Those that `left` are still there, but no longer meant.
    """

    views: list[EntityView]
    types: dict[str, list[News]]
    gone: list[str]
    left: list[str]


class Shown:
    """Which entities one listener was shown, where their state decides whether they are wanted."""

    def __init__(self, means: Callable[[EntityId], bool]) -> None:
        self._means = means
        self._names: set[str] = set()

    def begin_anew(self) -> None:
        """It has forgotten all that it was shown."""
        self._names.clear()

    def show(self, entity: EntityId) -> bool:
        """Whether it is to be shown now."""
        if self._means(entity):
            self._names.add(str(entity))
            return True
        return False

    def leave(self, entity: EntityId) -> bool:
        """It is not shown any more; whether it was."""
        name = str(entity)
        before = name in self._names
        self._names.discard(name)
        return before


def news_of(
    batch: Batch, view: Callable[[EntityId], EntityView | None], shown: Shown | None = None
) -> BusNews:
    """A batch to be delivered, with each entity as it is now."""
    news = BusNews([], {}, [], [])
    if shown is not None and batch.fresh:
        shown.begin_anew()
    for entity, changed in batch.changes.items():
        if (now := view(entity)) is None:
            was_there = shown is None or shown.leave(entity)
            if News.GONE in changed and was_there:
                news.gone.append(str(entity))
        elif shown is not None and not shown.show(entity):
            if shown.leave(entity):
                news.left.append(str(entity))
        elif not changed or changed - {News.GONE}:
            news.views.append(now)
            if alive := sorted(changed - {News.GONE}):
                news.types[now.entity] = alive
    return news


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
        self._number = 0
        self._floor = 0
        self._kept: deque[EntityChange] = deque()
        # For alike ones all is worked out once.
        self._listeners: dict[Subscription, list[Listener]] = {}

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
        changes = [
            EntityChange(self._number, str(entity), entity, some)
            for entity, some in zip(entities, types, strict=True)
        ]
        self._keep(changes)
        for wanted, listeners in self._listeners.items():
            if some := matched(wanted, changes):
                for listener in listeners:
                    listener.add(some)

    def listen(
        self, wanted: Subscription, wake: Callable[[], None], since: Cursor | None = None
    ) -> "Listener":
        """Listen from now on, with a snapshot first, or from a cursor that this bus has.

        `wake` is called when there is something to take, where there was nothing before.
        """
        alike = self._listeners.setdefault(wanted, [])
        listener = Listener(self, wanted, alike[0].merger if alike else Merger(), wake)
        if since is not None:
            assert self.has(since), f"{since} was not asked for"
            listener.resume(one for one in self._kept if one.number > since.number)
        alike.append(listener)
        return listener

    def leave(self, listener: "Listener") -> None:
        """It listens no more."""
        alike = self._listeners[listener.wanted]
        alike.remove(listener)
        if not alike:
            del self._listeners[listener.wanted]

    def there(self) -> list[EntityId]:
        """Which entities there are now."""
        return list(self._entities())

    def check(self) -> None:
        """Assert what must hold between any two calls."""
        assert len(self._kept) <= self._kept_max
        assert self._floor <= self._number
        for wanted, listeners in self._listeners.items():
            for listener in listeners:
                assert listener.wanted == wanted
                listener.check(self._number)

    def _keep(self, changes: Iterable[EntityChange]) -> None:
        for change in changes:
            if len(self._kept) == self._kept_max:
                self._floor = self._kept.popleft().number
            self._kept.append(change)


class Listener:
    """The entities that one listener has not received yet, in the order of their first changes."""

    def __init__(
        self, bus: Bus, wanted: Subscription, merger: Merger, wake: Callable[[], None]
    ) -> None:
        self.wanted = wanted
        self.merger = merger
        self._bus = bus
        self._wake = wake
        # What is to be told, from a place on, and what came later and is not merged with it yet.
        self._pending, self._begin = NOTHING_PENDING, 0
        self._later: list[Changes] = []
        self._behind = 0
        # What the snapshot was not asked about yet.
        self._rest: deque[EntityId] = deque()
        self._room = bus.pending_max
        self._overrun = True  # it knows nothing yet
        # The change up to which the picture goes that is being delivered; None: none is.
        self._until: int | None = None
        self._in_snapshot = False

    @property
    def ready(self) -> bool:
        """Whether there is something to take."""
        return self._overrun or bool(self._rest or self._behind)

    @property
    def gathers(self) -> bool:
        """Whether what changed until now is in the picture that is sent next, or to its end."""
        return self._overrun or bool(self._rest) or self._until is None

    def drain(self, count_max: int) -> Batch | None:
        """So many at most of what it is to receive; None where that is nothing.

        Of a snapshot few entities are asked about at once: it may be that none of these is wanted.
        """
        if not self.ready:
            return None
        gathers = self.gathers
        fresh, self._overrun = self._overrun, False
        if fresh:
            self._rest = deque(self._bus.there())
            self._room = max(self._bus.pending_max, len(self._rest))
            self._in_snapshot = True
        self._catch_up()
        if fresh or self._rest:
            changes: Mapping[EntityId, Types] = self._of_snapshot(count_max)
        else:
            begin, end = self._begin, min(self._begin + count_max, self._begin + self._behind)
            changes = self._pending.part(begin, end)
            self._begin, self._behind = end, len(self._pending.changes) - end
            if not self._behind:
                self._forget()
        if gathers:
            self._until = self._bus.latest.number
        whole = self._is_whole()
        if whole:
            self._until, self._in_snapshot = None, False
        return Batch(fresh, changes, self._cursor(), whole)

    def add(self, changes: Changes) -> None:
        """These changed, and there are some.

        They are merged when it takes them, or once it is twice as far behind as it may be, if each
        change counts: so what nobody takes is gone through seldom.
        """
        if self._overrun:
            return
        idle = not self.ready
        self._later.append(changes)
        self._behind += len(changes)
        if self._behind > 2 * self._room:
            self._catch_up()
            if self._behind > self._room:
                self._overrun = True
                self._rest.clear()
                self._forget()
        if idle:
            self._wake()

    def resume(self, missed: Iterable[EntityChange]) -> None:
        """Begin with these changes in place of a snapshot."""
        self._overrun = False
        if some := matched(self.wanted, missed):
            self.add(some)

    def close(self) -> None:
        self._bus.leave(self)

    def check(self, number: int) -> None:
        changes = [*self._pending.changes[self._begin :], *chain(*self._later)]
        numbers = [change.number for change in changes]
        assert numbers == sorted(numbers)
        assert len(numbers) == self._behind <= 2 * self._room
        assert not numbers or numbers[-1] <= number
        assert not (self._overrun and (numbers or self._rest))

    def _catch_up(self) -> None:
        """Merge what came later, so that each entity is told of once."""
        if self._later:
            self._pending = self.merger.merge(self._pending, self._begin, self._later)
            self._begin, self._later = 0, []
            self._behind = len(self._pending.changes)

    def _forget(self) -> None:
        self._pending, self._begin = NOTHING_PENDING, 0
        self._later, self._behind = [], 0

    def _of_snapshot(self, count_max: int) -> dict[EntityId, Types]:
        """Some more of it, but for what changed meanwhile: that is delivered at its end."""
        found, changed = dict[EntityId, Types](), self._pending.names
        for _ in range(min(len(self._rest), ASKED_MAX)):
            entity = self._rest.popleft()
            if entity in self.wanted and str(entity) not in changed:
                found[entity] = frozenset()
            if len(found) == count_max:
                break
        return found

    def _is_whole(self) -> bool:
        """Whether none of the entities is left that had changed when the picture was begun."""
        assert self._until is not None
        first = self._first()
        return not self._rest and (first is None or first.number > self._until)

    def _cursor(self) -> Cursor | None:
        latest = self._bus.latest
        if self._in_snapshot:
            return None
        first = self._first()
        return latest if first is None else Cursor(latest.epoch, first.number - 1)

    def _first(self) -> EntityChange | None:
        """The first change that is not told, where all that came is merged."""
        return self._pending.changes[self._begin] if self._behind else None
