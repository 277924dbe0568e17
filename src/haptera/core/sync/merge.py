"""Whose word counts: desired state flows down, observed state flows up, newest version first."""

from typing import Final, Protocol

from haptera.core.state.limits import MS
from haptera.core.state.side import PARENT
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.state.verdict import Stands
from haptera.core.sync.delta import mark_digest
from haptera.model.changes import Desired
from haptera.model.entity import EntityId
from haptera.model.events import Heard
from haptera.model.facts import Fact
from haptera.model.messages import DesiredUpdate, Mark, ObservedUpdate, Standing, Update

Versions = tuple[tuple[EntityId, int], ...]

# A version further ahead than this of what is held is none that anybody can have counted to.
VERSION_JUMP_MAX: Final = 1 << 40


class Incoming(Protocol):
    """The layer that the neighbour is the source of, for one node.

    What came from another epoch, or an earlier process, is kept but not *confirmed*: it does not
    count in the mark, so that the neighbour sends all again, and what it did not send is dropped.
    """

    def mark(self, node: str) -> Mark:
        """How far the layer is held, confirmed entities only."""

    def concerns(self, node: str, update: Update) -> bool:
        """Whether the neighbour on this node's link may speak of the entity, and in this version.

        Who it is its key says; what it speaks of is in the payload, and may be another's.
        """

    def merge(self, turn: Turn, update: Update, heard: Heard) -> None:
        """Take one entity over, if it is news; `concerns` has been asked."""

    def unconfirm(self, node: str, epoch: int) -> None:
        """Keep what there is, confirm none of it."""

    def settle(self, turn: Turn, node: str) -> None:
        """The neighbour's digest fits: drop what it did not confirm."""

    def entities(self, node: str) -> list[EntityId]:
        """All that there is, confirmed or not."""

    def reconcile(self, turn: Turn, node: str, last: int, versions: Versions) -> list[EntityId]:
        """Compare with the neighbour's list, which has come as far as version `last`.

        What it does not have goes; what we have in an earlier version, or not at all, we lack. That
        is not confirmed any more, and is told. What is later than the list is none of its business.
        """


class ObservedIn:
    """On a parent: what a child saw of its entities, unless this side looks at that itself."""

    def __init__(self, table: EntityTable, looked_at_here: set[tuple[str, str]]) -> None:
        self._table = table
        self._here = looked_at_here

    def mark(self, node: str) -> Mark:
        versions = {row.id: row.version for row in self._table.on(node) if row.version}
        return Mark(0, max(versions.values(), default=0), mark_digest(versions))

    def concerns(self, node: str, update: Update) -> bool:
        row = self._table.get(update.entity)
        held = 0 if row is None else row.version
        return update.entity.node == node and update.version - held <= VERSION_JUMP_MAX

    def merge(self, turn: Turn, update: Update, heard: Heard) -> None:
        assert isinstance(update, ObservedUpdate)
        row = self._table.get(update.entity)
        if row is None or update.version <= row.version:
            return
        row.version = update.version
        theirs = [
            name for name in (*row.known, *row.remembered) if not self._mine(row.id.kind, name)
        ]
        for name in theirs:
            row.known.pop(name, None)
            row.remembered.pop(name, None)
        row.reported.clear()
        for name, seen in update.values.items():
            if not self._mine(row.id.kind, name) and row.kind.has(name, seen.value):
                at = heard.arrived_at - seen.age_ms * MS
                fact = Fact(seen.value, seen.by, seen.method, at, heard.message.incarnation)
                (row.reported if seen.known else row.remembered)[name] = fact
        row.stands = _stands(update.standing, heard.arrived_at)
        turn.touch(row.id)

    def unconfirm(self, node: str, epoch: int) -> None:
        for row in self._table.on(node):
            row.version = 0

    def settle(self, turn: Turn, node: str) -> None:
        """Nothing to drop: a parent keeps its entities, whatever a child saw of them."""

    def entities(self, node: str) -> list[EntityId]:
        return [row.id for row in self._table.on(node)]

    def reconcile(self, turn: Turn, node: str, last: int, versions: Versions) -> list[EntityId]:
        theirs = dict(versions)
        lacking: list[EntityId] = []
        for row in self._table.on(node):
            if row.version < theirs.get(row.id, 0):
                lacking.append(row.id)
                row.version = 0
            elif row.id not in theirs and row.version <= last:
                row.version = 0
        return lacking

    def _mine(self, kind: str, name: str) -> bool:
        return (kind, name) in self._here


def _stands(told: Standing | None, arrived_at: int) -> Stands | None:
    if told is None:
        return None
    since = arrived_at - told.since_ms * MS
    return Stands(told.condition, since, told.why, told.error)


class DesiredIn:
    """On an agent: what its parent wants of its node's entities, and what it tells everywhere."""

    def __init__(self, table: EntityTable, epoch: int) -> None:
        self._table = table
        self.epoch = epoch
        self._changed = False

    def take_changed(self) -> bool:
        """Whether the layer changed since this was last asked."""
        changed, self._changed = self._changed, False
        return changed

    def mark(self, node: str) -> Mark:
        versions = {row.id: row.revision for row in self._table.told(node) if row.revision}
        last = max(self._table.revision, *versions.values(), 0)
        return Mark(self.epoch, last, mark_digest(versions))

    def concerns(self, node: str, update: Update) -> bool:
        if update.version - self._table.revision > VERSION_JUMP_MAX:
            return False
        return self._is_told(node, update.entity)

    def merge(self, turn: Turn, update: Update, heard: Heard) -> None:
        assert isinstance(update, DesiredUpdate)
        row = self._table.get(update.entity)
        if update.version <= (0 if row is None else row.revision):
            return
        if not self._table.knows(update.entity.kind):
            return  # of a parent with more kinds: both wait, and say so
        self._table.revision = max(self._table.revision, update.version)
        if update.gone:
            self._table.dismiss(update.entity, PARENT)
        else:
            row = self._table.make(update.entity)
            row.leaving = False
            desired = {
                name: Desired(value, PARENT)
                for name, value in update.values.items()
                if row.kind.has(name, value)
            }
            if (desired, update.attributes) != (row.desired, row.attributes):
                row.relent()
            row.attributes, row.revision = dict(update.attributes), update.version
            row.desired = desired
        self._changed = True
        turn.touch(update.entity)

    def unconfirm(self, node: str, epoch: int) -> None:
        self.epoch = epoch
        self._table.revision = 0
        for row in self._table.told(node):
            row.revision = 0

    def settle(self, turn: Turn, node: str) -> None:
        for row in self._table.told(node):
            if not row.revision and not row.leaving and row.declared:
                self._table.dismiss(row.id, PARENT)
                self._changed = True
                turn.touch(row.id)

    def entities(self, node: str) -> list[EntityId]:
        return [row.id for row in self._table.told(node)]

    def reconcile(self, turn: Turn, node: str, last: int, versions: Versions) -> list[EntityId]:
        theirs = dict(versions)
        lacking = {
            one: None
            for one, version in versions
            if self._held(one) < version and self._is_told(node, one)
        }
        for row in self._table.told(node):
            if row.id in lacking:
                row.revision = 0
            elif row.id not in theirs and row.revision <= last and not row.leaving:
                self._table.dismiss(row.id, PARENT)
                self._changed = True
                turn.touch(row.id)
        return list(lacking)

    def _is_told(self, node: str, entity: EntityId) -> bool:
        """Whether a parent tells this node of such an entity, as far as its kind is known here."""
        if entity.node is not None or not self._table.knows(entity.kind):
            return entity.node == node
        return self._table.is_everywhere(entity)

    def _held(self, entity: EntityId) -> int:
        row = self._table.get(entity)
        return 0 if row is None else row.revision

    def forget(self, entity: EntityId) -> None:
        """An entity that was leaving has left."""
        self._table.remove(entity)
        self._changed = True
