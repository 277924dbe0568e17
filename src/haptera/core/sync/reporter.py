"""The reports of a parent to the one above: its nodes, and what changed on them."""

from collections.abc import Iterable, Mapping

from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.sync.charge import Charge
from haptera.core.sync.reports import Reports
from haptera.model.entity import EntityId
from haptera.model.facts import Fact, Method
from haptera.model.messages import ObservedUpdate, SeenValue, Standing
from haptera.model.walltime import AGE_MS_MAX

# What changed, and by node whether its agent is heard; None: all as it was last sent.
Draft = tuple[tuple[ObservedUpdate, ...], Mapping[str, bool] | None]


class Reporter:
    """Notes what changes on the nodes that are kept here, or that a parent below has reported."""

    def __init__(self, table: EntityTable, charge: Charge, reports: Reports) -> None:
        self._table = table
        self._charge = charge
        self._reports = reports
        self._changed: set[EntityId] = set()
        self._told: dict[str, bool] | None = None

    def changed(self, entities: Iterable[EntityId]) -> None:
        """What is known of these is another than before."""
        self._changed.update(entities)

    def repeat(self) -> None:
        """Report all anew: what was sent last has not arrived, or is known no more."""
        self._told = None

    def draft(self, now: int) -> Draft:
        """What to report: what changed, and all of nodes that there was no word on before.

        Of what is declared no more the report says that nothing is known.
        """
        words = {node: self._word(node) for node in self._table.nodes()}
        nodes = {node: heard for node, heard in words.items() if heard is not None}
        before = self._told or {}
        new = nodes.keys() - before.keys()
        updates = [_update(row, now) for node in sorted(new) for row in self._table.on(node)]
        for entity in sorted(self._changed):
            if entity.node in nodes and entity.node not in new:
                row = self._table.get(entity)
                gone = ObservedUpdate(entity, 0, {})
                updates.append(gone if row is None else _update(row, now))
        self._changed = set()
        same, self._told = nodes == self._told, nodes
        return tuple(updates), None if same else nodes

    def _word(self, node: str) -> bool | None:
        if self._charge.keeps(node):
            return self._charge.hears(node)
        return self._reports.hears(node)


def _update(row: EntityState, now: int) -> ObservedUpdate:
    """All that is known of an entity, and where it stands."""
    belief, stance = row.belief, row.stance
    known = {name: _seen(fact, now, known=True) for name, fact in belief.known.items()}
    remembered = {name: _seen(fact, now, known=False) for name, fact in belief.remembered.items()}
    since_ms = min(stance.lasted(now) // MS, AGE_MS_MAX)
    standing = Standing(
        stance.condition, since_ms, stance.why, row.attempts.error, row.desired.digest()
    )
    return ObservedUpdate(row.id, 0, known | remembered, standing=standing)


def _seen(fact: Fact, now: int, *, known: bool) -> SeenValue:
    age_ms = min(max(0, now - fact.at) // MS, AGE_MS_MAX)
    # What others reported is a memory above, for on the wire there is no third method.
    was_read = fact.method is not Method.REPORTED
    method = fact.method if was_read else Method.READ
    return SeenValue(fact.value, known and was_read, method, age_ms, fact.by, fact.note)
