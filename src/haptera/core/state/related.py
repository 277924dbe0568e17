"""The relations of an entity: to entities of the whole cluster, each named by an attribute."""

from collections.abc import Iterator, Mapping

from haptera.core.state.entity.nothing import nothing
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.model.declared.schema import Relation
from haptera.model.entity import EntityId


def related_to(
    row: EntityState, node: EntityState | None
) -> Iterator[tuple[Relation, EntityId | None]]:
    """The entities that this one is related to, declared or not; None where none is named."""
    for one in row.kind.related:
        of = row if one.by.kind == row.kind.name else node
        name = None if of is None else of.desired.attributes.get(one.by.name)
        yield one, EntityId(one.variable.kind, name, None) if name else None


def known_of_related(
    table: EntityTable, row: EntityState, node: EntityState | None
) -> Mapping[str, str]:
    """The known values of related entities, by the names of the relations."""
    if not row.kind.related:
        return nothing()
    known: dict[str, str] = {}
    for relation, entity in related_to(row, node):
        other = None if entity is None else table.get(entity)
        fact = None if other is None else other.belief.known.get(relation.variable.name)
        if fact is not None:
            known[str(relation)] = fact.value
    return known
