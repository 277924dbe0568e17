"""The nodes that a selector means, where some are known by their jobs only."""

from collections.abc import Collection, Iterator

from haptera.api.backend import Queries
from haptera.api.writes.patching import missing
from haptera.model.entity import node_id
from haptera.selectors.selector import Selector
from haptera.selectors.selector_ast import NODE, Pattern, parts_of


async def nodes_meant(queries: Queries, select: Selector, others: Collection[str]) -> list[str]:
    """All nodes that a selector means, by name; `others` may not be declared any more.

    Raises:
        HapteraError: a node that it names one by one is not there.
    """
    views = await queries.entities([select])
    there = {one.name for one in views if one.kind == NODE}
    gone = {name for name in others if select.choice.by_name(node_id(name))}
    for name in _spelt(select):
        if name not in others and queries.entity(node_id(name)) is None:
            raise missing(queries, node_id(name))
    return sorted(there | gone)


def _spelt(select: Selector) -> Iterator[str]:
    """The nodes that it spells out."""
    for part in parts_of(select.choice):
        on = part.on if isinstance(part, Pattern) and part.kind in (None, NODE) else None
        if on is not None and on.plain:
            yield from (one.name for one in on.members())
