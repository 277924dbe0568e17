"""What a neighbour has not heard yet: the layer that we send it, its mark, and the changes."""

from collections.abc import Collection
from hashlib import blake2b
from typing import Protocol

from haptera.core.state.limits import GONE_MAX, MS
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.typical_durations import Usual, is_notable
from haptera.model.entity import EntityId
from haptera.model.facts import Fact
from haptera.model.messages import (
    DesiredUpdate,
    Mark,
    Measure,
    ObservedUpdate,
    SeenValue,
    Standing,
    Update,
)
from haptera.model.views import Condition


class Outgoing(Protocol):
    """The layer that this side is the source of, for one node."""

    def mark(self, node: str) -> Mark:
        """How far the layer has come."""

    def versions(self, node: str) -> dict[EntityId, int]:
        """All that counts in the mark, each in its version."""

    def updates(
        self, node: str, after: int, now: int, also: Collection[EntityId] = ()
    ) -> tuple[Update, ...]:
        """All entities that changed after this version, the latest change last, and some others.

        Last, because a neighbour that holds the latest version and yet another digest than ours
        takes itself to have missed something, and asks what.
        """

    def measures(self, after: int) -> tuple[Measure, ...]:
        """How long parts usually take, as far as that was not told with this version or before.

        A measure is told beside changes, for these are told until they are held; it is told anew
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
    """A parent's desired layer of each child: what is on it, and what is told everywhere.

    What is gone is told until the child knows; of the last GONE_MAX only, for a child that missed
    more holds another digest than ours, and then asks for the list.
    """

    def __init__(self, table: EntityTable, epoch: int) -> None:
        self._table = table
        self._epoch = epoch
        # By node; None: told everywhere.
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
        if row is None or not row.declared:
            gone[entity] = revision
            if len(gone) > GONE_MAX:
                del gone[next(iter(gone))]

    def take_changed(self) -> set[str]:
        """The nodes whose layer changed since this was last asked."""
        nodes, self._changed = self._changed, set()
        return nodes

    def mark(self, node: str) -> Mark:
        here, everywhere = self._mark_of(node), self._mark_of(None)
        # A digest over both, as `mark_digest` makes one of all: for one alone it must not be made
        # anew for each of many nodes whenever the other changes.
        digest = here.digest ^ everywhere.digest
        return Mark(self._epoch, max(here.version, everywhere.version), digest)

    def versions(self, node: str) -> dict[EntityId, int]:
        rows = self._table.told(node)
        return {row.id: row.revision for row in rows if row.declared}

    def updates(
        self, node: str, after: int, now: int, also: Collection[EntityId] = ()
    ) -> tuple[Update, ...]:
        here = [
            DesiredUpdate(
                row.id,
                row.revision,
                {name: one.value for name, one in row.desired.items()},
                dict(row.attributes),
            )
            for row in self._table.told(node)
            if row.revision > after or row.id in also
        ]
        gone = [
            DesiredUpdate(entity, revision, {}, {}, gone=True)
            for where in (node, None)
            for entity, revision in self._gone.get(where, {}).items()
            if revision > after
        ]
        return tuple(sorted((*here, *gone), key=lambda one: one.version))

    def measures(self, after: int) -> tuple[Measure, ...]:
        """A child has no use for them."""
        return ()

    def _mark_of(self, node: str | None) -> Mark:
        """The mark of what is on one node only, or (None) of what is told everywhere."""
        if node not in self._marks:
            rows = self._table.everywhere() if node is None else self._table.on(node)
            versions = {row.id: row.revision for row in rows if row.declared}
            gone = self._gone.get(node, {})
            last = max((*versions.values(), *gone.values()), default=0)
            self._marks[node] = Mark(self._epoch, last, mark_digest(versions))
        return self._marks[node]


class ObservedOut:
    """An agent's observed layer; a change is one of values or of words, not of ages."""

    def __init__(
        self, table: EntityTable, side: Side, looked_at_here: set[tuple[str, str]], usual: Usual
    ) -> None:
        self._table = table
        self._side = side
        self._here = looked_at_here
        self._usual = usual
        self._version = 0
        # By part, each with the version that it was first told with.
        self._measures: dict[str, tuple[Measure, int]] = {}

    def changed(self, row: EntityState) -> bool:
        """Number the row's observed state anew where it differs from what was last told."""
        signature: tuple[tuple[str | bool | None, ...], ...] = tuple(
            sorted((name, fact.value, known, fact.method) for name, fact, known in self._facts(row))
        )
        if row.condition is not Condition.IDLE:
            signature = (*signature, (row.condition, row.why, row.error))
        if row.leaving or signature == row.told:
            return False
        row.told = signature
        self._version += 1
        row.version = self._version
        return True

    def mark(self, node: str) -> Mark:
        return Mark(0, self._version, mark_digest(self.versions(node)))

    def versions(self, node: str) -> dict[EntityId, int]:
        return {row.id: row.version for row in self._told(node)}

    def updates(
        self, node: str, after: int, now: int, also: Collection[EntityId] = ()
    ) -> tuple[Update, ...]:
        rows = [row for row in self._told(node) if row.version > after or row.id in also]
        return tuple(
            ObservedUpdate(row.id, row.version, self._seen(row, now), standing=_standing(row, now))
            for row in sorted(rows, key=lambda row: row.version)
        )

    def measures(self, after: int) -> tuple[Measure, ...]:
        if after < self._version:
            for path, usual_ns in self._usual:
                told, _ = self._measures.get(path, (None, 0))
                if told is None or is_notable(told.usual_ms * MS, usual_ns):
                    self._measures[path] = Measure(path, usual_ns // MS), self._version
        return tuple(one for one, version in self._measures.values() if version > after)

    def _told(self, node: str) -> list[EntityState]:
        """What the parent is told of; what it no longer declares is no longer its concern."""
        return [row for row in self._table.on(node) if row.version and not row.leaving]

    def _seen(self, row: EntityState, now: int) -> dict[str, SeenValue]:
        return {
            name: SeenValue(fact.value, known, fact.method, (now - fact.at) // MS, fact.by)
            for name, fact, known in self._facts(row)
        }

    def _facts(self, row: EntityState) -> list[tuple[str, Fact, bool]]:
        """What this side itself looks at; for the rest its parent's word counts."""
        facts = [(name, fact, True) for name, fact in row.known.items()]
        facts += [(name, fact, False) for name, fact in row.remembered.items()]
        return [one for one in facts if (row.kind.name, one[0]) in self._here]


def _standing(row: EntityState, now: int) -> Standing | None:
    if row.condition is Condition.IDLE:
        return None
    error = None if row.error == row.why else row.error
    return Standing(row.condition, row.lasted(now) // MS, row.why, error)
