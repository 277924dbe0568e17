"""The changes that a neighbour has not received: the layer that is sent to it, and its mark."""

from collections.abc import Collection
from hashlib import blake2b
from typing import Final, Protocol

from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.state.typical_durations import Usual, is_notable
from haptera.core.sync.node_scope import NodeScope
from haptera.model.entity import EntityId
from haptera.model.messages import (
    DesiredUpdate,
    Mark,
    Measure,
    ObservedUpdate,
    SeenValue,
    Standing,
    Update,
)

# Of how many entities that are gone a parent tells each of its nodes.
GONE_MAX: Final = 64


class Outgoing(Protocol):
    """The layer that this side is the source of, as far as one neighbour receives it."""

    def mark(self, peer: str) -> Mark:
        """How far the layer has come."""

    def versions(self, peer: str) -> dict[EntityId, int]:
        """All that counts in the mark, each in its version."""

    def updates(
        self, peer: str, after: int, now: int, also: Collection[EntityId] = ()
    ) -> tuple[Update, ...]:
        """All entities that changed after this version, the latest change last, and some others.

        Last, because a neighbour that holds the latest version and yet another digest than ours
        takes itself to have missed something, and asks what.
        """

    def measures(self, after: int) -> tuple[Measure, ...]:
        """The usual durations of parts that were not sent with this version or before.

        A measure is sent beside changes, for these are sent until they are held; it is sent anew
        once it is notably another.
        """


def mark_digest(versions: dict[EntityId, int]) -> int:
    """64 bits that stand for which entities there are, and in which version each."""
    total = 0
    for entity, version in versions.items():
        text = f"{entity}={version}".encode()
        total ^= int.from_bytes(blake2b(text, digest_size=8).digest())
    return total


class DesiredOut:
    """A parent's desired layer of each agent: what is on its node, and what is sent everywhere.

    What is gone is sent until the child knows; of the last GONE_MAX only, for a child that missed
    more holds another digest than ours, and then asks for the list.
    """

    def __init__(self, table: EntityTable, epoch: int) -> None:
        self._table = table
        self.epoch = epoch
        # By node; None: sent everywhere.
        self._gone: dict[str | None, dict[EntityId, int]] = {}
        self._marks: dict[str | None, Mark] = {}
        self._changed: set[str] = set()

    def changed(self, entity: EntityId, revision: int) -> None:
        """The desired layer of this entity changed, or the entity is gone."""
        if entity.node is not None:
            self._changed.add(entity.node)
        elif self._table.is_everywhere(entity):
            self._changed.update(self._table.nodes())
        else:
            return
        self._marks.pop(entity.node, None)
        gone = self._gone.setdefault(entity.node, {})
        gone.pop(entity, None)
        row = self._table.get(entity)
        if row is None or not row.desired.declared:
            gone[entity] = revision
            if len(gone) > GONE_MAX:
                del gone[next(iter(gone))]

    def take_changed(self) -> set[str]:
        """The nodes whose layer changed since this was last asked."""
        nodes, self._changed = self._changed, set()
        return nodes

    def mark(self, peer: str) -> Mark:
        # A digest over all, as `mark_digest` makes it: it must not be made anew for each of many
        # nodes whenever something that is sent everywhere changes.
        own, everywhere = self._mark_of(peer), self._mark_of(None)
        version = max(own.version, everywhere.version)
        return Mark(self.epoch, version, own.digest ^ everywhere.digest)

    def versions(self, peer: str) -> dict[EntityId, int]:
        return {
            row.id: row.desired.revision
            for row in self._table.of_agent(peer)
            if row.desired.declared
        }

    def measures(self, after: int) -> tuple[Measure, ...]:
        """Nobody below has a use for them."""
        return ()

    def updates(
        self, peer: str, after: int, now: int, also: Collection[EntityId] = ()
    ) -> tuple[Update, ...]:
        here = [
            DesiredUpdate(
                row.id,
                row.desired.revision,
                {name: one.value for name, one in row.desired.values.items()},
                dict(row.desired.attributes),
            )
            for row in self._table.of_agent(peer)
            if row.desired.revision > after or row.id in also
        ]
        gone = [
            DesiredUpdate(entity, revision, {}, {}, gone=True)
            for where in (peer, None)
            for entity, revision in self._gone.get(where, {}).items()
            if revision > after
        ]
        return tuple(sorted((*here, *gone), key=lambda one: one.version))

    def _mark_of(self, node: str | None) -> Mark:
        """The mark of what is on one node only, or (None) of what is sent everywhere."""
        if node not in self._marks:
            rows = self._table.everywhere() if node is None else self._table.on(node)
            versions = {row.id: row.desired.revision for row in rows if row.desired.declared}
            gone = self._gone.get(node, {})
            last = max((*versions.values(), *gone.values()), default=0)
            self._marks[node] = Mark(0, last, mark_digest(versions))
        return self._marks[node]


class ObservedOut:
    """What is seen below the parent above; a change is one of values or of why it stands so.

    Ages and notes are sent with it; alone they are no news, for a note may differ at each look.
    """

    def __init__(self, scope: NodeScope, usual: Usual) -> None:
        self._scope = scope
        self._usual = usual
        self._version = 0
        # By part, each with the version that it was first sent with.
        self._measures: dict[str, tuple[Measure, int]] = {}

    def changed(self, row: EntityState) -> bool:
        """Number the row's observed state anew where it differs from what was last sent."""
        if row.desired.leaving or not self._scope.reports(row):
            row.link.version, row.link.told = 0, ()
            return False
        facts = self._scope.facts(row)
        signature: tuple[tuple[str | bool | None, ...], ...] = tuple(
            sorted((name, fact.value, known, fact.method) for name, fact, known in facts)
        )
        if self._scope.stands(row):
            signature = (*signature, (row.stance.condition, row.stance.why, row.attempts.error))
        if signature == row.link.told:
            return False
        row.link.told = signature
        self._version += 1
        row.link.version = self._version
        return True

    def mark(self, peer: str) -> Mark:
        return Mark(0, self._version, mark_digest(self.versions(peer)))

    def versions(self, peer: str) -> dict[EntityId, int]:
        return {row.id: row.link.version for row in self._told()}

    def updates(
        self, peer: str, after: int, now: int, also: Collection[EntityId] = ()
    ) -> tuple[Update, ...]:
        rows = [row for row in self._told() if row.link.version > after or row.id in also]
        return tuple(
            ObservedUpdate(
                row.id, row.link.version, self._seen(row, now), standing=self._standing(row, now)
            )
            for row in sorted(rows, key=lambda row: row.link.version)
        )

    def measures(self, after: int) -> tuple[Measure, ...]:
        if after < self._version:
            for path, usual_ns in self._usual:
                told, _ = self._measures.get(path, (None, 0))
                if told is None or is_notable(told.usual_ms * MS, usual_ns):
                    self._measures[path] = Measure(path, usual_ns // MS), self._version
        return tuple(one for one, version in self._measures.values() if version > after)

    def _told(self) -> list[EntityState]:
        """The layer for the parent; what it no longer declares is no longer its concern."""
        return [row for row in self._scope.rows() if row.link.version and not row.desired.leaving]

    def _seen(self, row: EntityState, now: int) -> dict[str, SeenValue]:
        return {
            name: SeenValue(
                fact.value, known, fact.method, (now - fact.at) // MS, fact.by, fact.note
            )
            for name, fact, known in self._scope.facts(row)
        }

    def _standing(self, row: EntityState, now: int) -> Standing | None:
        if not self._scope.stands(row):
            return None
        error = None if row.attempts.error == row.stance.why else row.attempts.error
        return Standing(row.stance.condition, row.stance.lasted(now) // MS, row.stance.why, error)
