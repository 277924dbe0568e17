"""What passes on links to parents below: what is desired of their nodes, and how these are."""

from collections.abc import Collection, Sequence

from haptera.core.state.row import EntityState
from haptera.core.state.side import below, parent_below
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.charge import Charge, Reports, parents_of
from haptera.core.sync.delta import DesiredOut, mark_digest
from haptera.core.sync.merge import VERSION_JUMP_MAX, Versions
from haptera.kinds.node import Agent, agent
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Heard, Reported, Silenced
from haptera.model.messages import Mark, Measure, ObservedUpdate, Update


class SubtreeOut:
    """The desired layer of each parent below: of the nodes whose list has it."""

    def __init__(self, table: EntityTable, desired: DesiredOut) -> None:
        self._table = table
        self._desired = desired
        # By node, and by parent; None before anybody has asked.
        self._parents_of: dict[str, tuple[str, ...]] = {}
        self._nodes_of: dict[str, dict[str, None]] | None = None
        self._changed: set[str] = set()

    def changed(self, entity: EntityId) -> None:
        """The desired layer of this entity changed, or the entity is gone."""
        if self._nodes_of is None:
            return
        if entity.node is None:
            self._changed.update(map(below, self._nodes_of))
            return
        before = self._parents_of.get(entity.node, ())
        if entity.kind == "node":
            self._list(entity.node)
        self._changed.update(map(below, {*before, *self._parents_of.get(entity.node, ())}))

    def take_changed(self) -> set[str]:
        """The parents below whose layer changed since this was last asked."""
        names, self._changed = self._changed, set()
        return names

    def mark(self, peer: str) -> Mark:
        return self._desired.mark_of(self._nodes(peer))

    def versions(self, peer: str) -> dict[EntityId, int]:
        return self._desired.versions_of(self._nodes(peer))

    def updates(
        self, peer: str, after: int, now: int, also: Collection[EntityId] = ()
    ) -> tuple[Update, ...]:
        return self._desired.updates_of(self._nodes(peer), after, also)

    def measures(self, after: int) -> tuple[Measure, ...]:
        """Nobody below has a use for them."""
        return ()

    def _nodes(self, peer: str) -> Collection[str]:
        if self._nodes_of is None:
            self._nodes_of = {}
            for node in self._table.nodes():
                self._list(node)
        return self._nodes_of.get(parent_below(peer) or "", {})

    def _list(self, node: str) -> None:
        """Go by the node's list as it is now."""
        assert self._nodes_of is not None
        for parent in self._parents_of.pop(node, ()):
            self._nodes_of[parent].pop(node, None)
        row = self._table.get(node_id(node))
        if row is not None and (listed := parents_of(row.desired.attributes)):
            self._parents_of[node] = listed
            for parent in listed:
                self._nodes_of.setdefault(parent, {})[node] = None


class PictureIn:
    """What parents below tell of the nodes that they keep; `reports` decides whose word counts.

    What was told of an entity that has gone since, and is there again, was told of another one.
    """

    def __init__(self, table: EntityTable, charge: Charge, reports: Reports) -> None:
        self._table = table
        self._charge = charge
        self._reports = reports
        self._held: dict[str, dict[EntityId, tuple[EntityState, int]]] = {}
        self._heard: dict[str, set[str]] = {}

    def mark(self, peer: str) -> Mark:
        versions = {
            entity: version
            for entity, (row, version) in self._held.get(peer, {}).items()
            if self._table.get(entity) is row
        }
        return Mark(0, max(versions.values(), default=0), mark_digest(versions))

    def concerns(self, peer: str, update: Update) -> bool:
        node = update.entity.node
        listed = node is not None and parent_below(peer) in self._charge.listed(node)
        return listed and update.version - self._version(peer, update.entity) <= VERSION_JUMP_MAX

    def merge(self, turn: Turn, updates: Sequence[Update], heard: Heard) -> None:
        parent = parent_below(heard.peer)
        assert parent is not None
        told = self._held.setdefault(heard.peer, {})
        hears = self._heard.setdefault(heard.peer, set())
        news: list[ObservedUpdate] = []
        for update in updates:
            assert isinstance(update, ObservedUpdate)
            row = self._table.get(update.entity)
            if row is None or update.version <= self._version(heard.peer, update.entity):
                continue
            told[update.entity] = row, update.version
            news.append(update)
            if update.entity.kind == "node":
                up = update.values.get(agent.name)
                is_there = up is not None and up.known and up.value == Agent.UP
                (hears.add if is_there else hears.discard)(update.entity.name)
        if news:
            at, names = heard.arrived_at, tuple(sorted(hears))
            self._reports.take(turn, Reported(parent, tuple(news), names, at))

    def unconfirm(self, peer: str, epoch: int) -> None:
        self._held.pop(peer, None)

    def settle(self, turn: Turn, peer: str) -> None:
        """Nothing to drop: a parent keeps its entities, whatever is seen of them."""

    def entities(self, peer: str) -> list[EntityId]:
        """Nothing is decided here on what another parent keeps."""
        return []

    def reconcile(self, turn: Turn, peer: str, last: int, versions: Versions) -> list[EntityId]:
        theirs, told = dict(versions), self._held.get(peer, {})
        for entity, (_, version) in [*told.items()]:
            if version < theirs.get(entity, 0) or (entity not in theirs and version <= last):
                del told[entity]
        return [
            one
            for one, version in versions
            if self._version(peer, one) < version and self._table.get(one) is not None
        ]

    def lose(self, turn: Turn, peer: str) -> None:
        parent = parent_below(peer)
        assert parent is not None
        self._held.pop(peer, None)
        self._heard.pop(peer, None)
        self._reports.take(turn, Silenced(parent))

    def resume(self, turn: Turn, peer: str) -> None:
        """What it tells from now on says which nodes it keeps."""

    def _version(self, peer: str, entity: EntityId) -> int:
        row, version = self._held.get(peer, {}).get(entity, (None, 0))
        return version if row is not None and self._table.get(entity) is row else 0
