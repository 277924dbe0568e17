"""What is left of a freeze of which a part is thawed, written as one selector."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from haptera.kinds import node
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.nodeset import fold
from haptera.model.selector import ALL, SELECTOR_BYTES_MAX, Names, Selector

_NODE: Final = node.kind.name


@dataclass(frozen=True, slots=True)
class Thaw:
    """What of a selector is thawed, and what is left of it, if anything is."""

    thawed: str
    rest: str | None


def thaw(held: Selector, by: Selector, entities: Collection[EntityId]) -> Thaw | None:
    """Take `by` out of what is held; None where they have nothing in common.

    Where a pattern or `*` is held, what is left are those of the declared `entities` by name; what
    such a selector holds that is on no node is then thawed too.

    >>> from haptera.model.selector import parse_selector
    >>> thaw(parse_selector("rack1n[1-4]"), parse_selector("rack*n2"), [])
    Thaw(thawed='rack1n2', rest='rack1n[1,3-4]')

    Raises:
        HapteraError: what is left cannot be written as one selector.
    """
    if by.text in (ALL, held.text):
        return Thaw(held.text, None)
    mine = [one for one in entities if one in held]
    if _covers_names(held, by, mine):
        nodes = _expand(_nodes(held), (one.node for one in mine if one.node is not None))
        return _split(held, nodes, _nodes(by), _on_nodes)
    if held.kind == by.kind and _covers_nodes(held, by, mine):
        return _split(held, _expand(held.names, (one.name for one in mine)), by.names, _named)
    if any(one in by for one in mine):
        raise _unwritable(held, f"what is left of {held} without {by} is not one selector")
    return None


def _covers_names(held: Selector, by: Selector, mine: Iterable[EntityId]) -> bool:
    """Whether on nodes that both select, all that is held is thawed."""
    if by.kind is None or by.kind == held.kind == _NODE:
        return True
    names = _expand(held.names, (one.name for one in mine))
    return by.kind == held.kind and (by.names is None or all(one in by.names for one in names))


def _covers_nodes(held: Selector, by: Selector, mine: Collection[EntityId]) -> bool:
    nodes = _nodes(by)
    return nodes is None or all(one.node is not None and one.node in nodes for one in mine)


def _split(
    held: Selector,
    names: Collection[str],
    by: Names | None,
    write: Callable[[Selector, Iterable[str]], str],
) -> Thaw | None:
    thawed = [name for name in names if by is None or name in by]
    rest = [name for name in names if name not in thawed]
    if not thawed:
        return None
    if not rest:
        return Thaw(held.text, None)
    left = write(held, rest)
    if len(left.encode()) > SELECTOR_BYTES_MAX:
        raise _unwritable(held, f"what is left of {held} takes over {SELECTOR_BYTES_MAX} bytes")
    return Thaw(write(held, thawed), left)


def _nodes(selector: Selector) -> Names | None:
    """The nodes that a selector is limited to."""
    return selector.names if selector.kind == _NODE else selector.nodes


def _expand(names: Names | None, declared: Iterable[str]) -> frozenset[str]:
    if names is not None and names.pattern is None:
        return names.exact
    return frozenset(one for one in declared if names is None or one in names)


def _on_nodes(held: Selector, nodes: Iterable[str]) -> str:
    """The same as is held, on these nodes only."""
    if held.kind is None:
        return fold(nodes)
    if held.kind == _NODE:
        return f"{_NODE}:{fold(nodes)}"
    return f"{held.text.partition('@')[0]}@{fold(nodes)}"


def _named(held: Selector, names: Iterable[str]) -> str:
    """The same as is held, of these names only."""
    _, at, nodes = held.text.partition("@")
    return f"{held.kind}:{fold(names)}{at}{nodes}"


def _unwritable(held: Selector, what: str) -> HapteraError:
    return HapteraError(what, do=f"thaw {held}, then freeze what should stay so")
