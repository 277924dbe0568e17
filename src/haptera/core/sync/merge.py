"""The merge of two layers: desired state flows down, observed state up, newest version first."""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from haptera.core.state.entity.verdict import Stands
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.side import PARENT
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.delta import mark_digest
from haptera.core.sync.fragments import gather
from haptera.core.sync.node_scope import NodeScope
from haptera.model.changes import Desired
from haptera.model.effects import SaveDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Heard
from haptera.model.facts import Fact
from haptera.model.messages import (
    DesiredUpdate,
    Mark,
    ObservedFragment,
    ObservedUpdate,
    Standing,
    Update,
)

Versions = tuple[tuple[EntityId, int], ...]

# A version further ahead than this of what is held is none that anybody can have counted to.
VERSION_JUMP_MAX: Final = 1 << 40


class Incoming(Protocol):
    """The layer that a neighbour is the source of.

    What came from another epoch, or an earlier process, is kept but not *confirmed*: it does not
    count in the mark, so that the neighbour sends all again, and what it did not send is dropped.
    """

    @property
    def epoch(self) -> int:
        """Of what is held; of what is observed there are none."""

    def mark(self, peer: str) -> Mark:
        """How far the layer is held, confirmed entities only."""

    def concerns(self, peer: str, update: Update) -> bool:
        """Whether the neighbour may speak of the entity, and in this version.

        Who it is its key says; what it speaks of is in the payload, and may be another's.
        """

    def merge(self, turn: Turn, updates: Sequence[Update], heard: Heard) -> None:
        """Take over what of this is news; `concerns` has been asked of each."""

    def unconfirm(self, peer: str, epoch: int) -> None:
        """Keep what there is, confirm none of it."""

    def settle(self, turn: Turn, peer: str) -> None:
        """The neighbour's digest fits: drop what it did not confirm."""

    def entities(self, peer: str) -> list[EntityId]:
        """All that there is, confirmed or not."""

    def reconcile(self, turn: Turn, peer: str, last: int, versions: Versions) -> list[EntityId]:
        """Compare with the neighbour's list, which has come as far as version `last`.

        What it does not have goes; what we have in an earlier version, or not at all, we lack. That
        is not confirmed any more, and is sent. What is later than the list is none of its business.
        """

    def doubt(self, turn: Turn, peer: str) -> None:
        """The neighbour is late, or was late and is heard again."""

    def lose(self, turn: Turn, peer: str) -> None:
        """The neighbour has been silent for too long."""

    def resume(self, turn: Turn, peer: str) -> None:
        """The neighbour is heard for the first time, or again after it was lost."""


class ObservedIn:
    """On a parent: what an agent saw of its entities, unless this side looks at that itself."""

    epoch: Final = 0

    def __init__(self, table: EntityTable, looked_at_here: set[tuple[str, str]]) -> None:
        self._table = table
        self._here = looked_at_here

    def mark(self, peer: str) -> Mark:
        versions = {row.id: row.link.heard for row in self._table.on(peer) if row.link.heard}
        return Mark(self.epoch, max(versions.values(), default=0), mark_digest(versions))

    def concerns(self, peer: str, update: Update) -> bool:
        row = self._table.get(update.entity)
        held = 0 if row is None else row.link.heard
        return update.entity.node == peer and update.version - held <= VERSION_JUMP_MAX

    def merge(self, turn: Turn, updates: Sequence[Update], heard: Heard) -> None:
        for update in updates:
            assert not isinstance(update, DesiredUpdate)
            row = self._table.get(update.entity)
            if row is None or update.version <= row.link.heard:
                continue
            if isinstance(update, ObservedFragment):
                whole = gather(row, update, heard.arrived_at)
            else:
                whole = update
            if whole is not None:
                self._merge(turn, row, whole, heard)

    def _merge(self, turn: Turn, row: EntityState, update: ObservedUpdate, heard: Heard) -> None:
        row.link.heard = update.version
        belief, facts = row.belief, dict[str, Fact]()
        held = (*belief.known, *belief.remembered)
        belief.drop(name for name in held if not self._mine(row.id.kind, name))
        for name, seen in update.values.items():
            if not self._mine(row.id.kind, name) and row.kind.has(name, seen.value):
                at = heard.arrived_at - seen.age_ms * MS
                incarnation = heard.message.incarnation
                fact = Fact(seen.value, seen.by, seen.method, at, incarnation, seen.note)
                if seen.known:
                    facts[name] = fact
                else:
                    belief.remember(name, fact)
        row.report.facts = facts
        row.report.stands = _stands(update.standing, heard.arrived_at)
        turn.touch(row.id)

    def unconfirm(self, peer: str, epoch: int) -> None:
        for row in self._table.on(peer):
            row.link.heard, row.link.fragments = 0, None

    def settle(self, turn: Turn, peer: str) -> None:
        """Nothing to drop: a parent keeps its entities, whatever a child saw of them."""

    def entities(self, peer: str) -> list[EntityId]:
        return [row.id for row in self._table.on(peer)]

    def reconcile(self, turn: Turn, peer: str, last: int, versions: Versions) -> list[EntityId]:
        theirs = dict(versions)
        lacking: list[EntityId] = []
        for row in self._table.on(peer):
            if row.link.heard < theirs.get(row.id, 0):
                lacking.append(row.id)
                row.link.heard = 0
            elif row.id not in theirs and row.link.heard <= last:
                row.link.heard = 0
        return lacking

    def doubt(self, turn: Turn, peer: str) -> None:
        turn.touch(node_id(peer))

    def lose(self, turn: Turn, peer: str) -> None:
        turn.touch(node_id(peer))

    def resume(self, turn: Turn, peer: str) -> None:
        turn.touch(node_id(peer))

    def _mine(self, kind: str, name: str) -> bool:
        return (kind, name) in self._here


def _stands(told: Standing | None, arrived_at: int) -> Stands | None:
    if told is None:
        return None
    since = arrived_at - told.since_ms * MS
    return Stands(told.condition, since, told.why, told.error)


class DesiredIn:
    """What the parent wants of the entities of an agent's node, and what it tells everywhere.

    The layer is `unsaved` where it is another than the one that was last kept.
    """

    def __init__(self, table: EntityTable, epoch: int, scope: NodeScope) -> None:
        self._table = table
        self.epoch = epoch
        self._scope = scope
        self.unsaved = False

    def save(self) -> SaveDesired:
        """Have the layer kept as it is: what is not confirmed is not when it is loaded, either."""
        self.unsaved = False
        stored = tuple(
            msgspec.structs.replace(one, revision=self._held(one.entity))
            for one in self._table.stored()
        )
        return SaveDesired(self.epoch, self._table.revision, stored)

    def mark(self, peer: str) -> Mark:
        versions = {row.id: row.link.confirmed for row in self._told() if row.link.confirmed}
        last = max(self._table.revision, *versions.values(), 0)
        return Mark(self.epoch, last, mark_digest(versions))

    def concerns(self, peer: str, update: Update) -> bool:
        if update.version - self._table.revision > VERSION_JUMP_MAX:
            return False
        return self._is_told(update.entity)

    def merge(self, turn: Turn, updates: Sequence[Update], heard: Heard) -> None:
        for update in updates:
            assert isinstance(update, DesiredUpdate)
            # A kind that is not known is of a parent with more kinds: both wait, and say so.
            news = update.version > self._held(update.entity)
            if news and self._table.knows(update.entity.kind):
                self._merge(turn, update)

    def _merge(self, turn: Turn, update: DesiredUpdate) -> None:
        self._table.revision = max(self._table.revision, update.version)
        if update.gone:
            self._scope.leave(update.entity)
        else:
            row = self._table.make(update.entity)
            values = {
                name: Desired(value, PARENT)
                for name, value in update.values.items()
                if row.kind.has(name, value)
            }
            if row.desired.replace(dict(update.attributes), values, update.version):
                row.relent()
            row.link.confirmed = update.version
        self._note(turn, update.entity)

    def unconfirm(self, peer: str, epoch: int) -> None:
        self.epoch = epoch
        self._table.revision = 0
        for row in self._told():
            row.link.confirmed = 0

    def settle(self, turn: Turn, peer: str) -> None:
        for row in self._told():
            if not row.link.confirmed and not row.desired.leaving and row.desired.declared:
                self._drop(turn, row)

    def entities(self, peer: str) -> list[EntityId]:
        return [row.id for row in self._told()]

    def reconcile(self, turn: Turn, peer: str, last: int, versions: Versions) -> list[EntityId]:
        theirs = dict(versions)
        lacking = {
            one: None
            for one, version in versions
            if self._held(one) < version and self._is_told(one)
        }
        for row in self._told():
            if row.id in lacking:
                row.link.confirmed = 0
            elif row.id not in theirs and row.link.confirmed <= last and not row.desired.leaving:
                self._drop(turn, row)
        return list(lacking)

    def doubt(self, turn: Turn, peer: str) -> None:
        """What the parent wants still holds."""

    def lose(self, turn: Turn, peer: str) -> None:
        self._touch_heard(turn)

    def resume(self, turn: Turn, peer: str) -> None:
        self._touch_heard(turn)

    def _touch_heard(self, turn: Turn) -> None:
        for entity in self._scope.heard():
            turn.touch(entity)

    def _drop(self, turn: Turn, row: EntityState) -> None:
        self._scope.leave(row.id)
        self._note(turn, row.id)

    def _note(self, turn: Turn, entity: EntityId) -> None:
        self.unsaved = True
        turn.touch(entity)

    def _told(self) -> list[EntityState]:
        return [*self._scope.rows(), *self._table.everywhere()]

    def _is_told(self, entity: EntityId) -> bool:
        """Whether a parent tells this side of such an entity, as far as its kind is known here."""
        if entity.node is not None or not self._table.knows(entity.kind):
            return entity.node == self._scope.node
        return self._table.is_everywhere(entity)

    def _held(self, entity: EntityId) -> int:
        row = self._table.get(entity)
        return 0 if row is None else row.link.confirmed

    def forget(self, entity: EntityId) -> None:
        """An entity that was leaving has left."""
        self._table.remove(entity)
        self.unsaved = True
