"""The rest of a freeze that is thawed in part, as one selector."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.core.state.selecting import Declared
from haptera.kinds.rules.rule import OF_BYTES_MAX
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code, HapteraError
from haptera.planner.domain.pieces import Pieces, slices
from haptera.selectors.nodeset import NodeSet, fold
from haptera.selectors.selector import ALL, Selector
from haptera.selectors.selector_ast import NODE, AllOf, AnyOf, Pattern

# What is declared, with its attributes.
Entities = Mapping[EntityId, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Thaw:
    """What of a selector is thawed, and what is left of it, if anything is."""

    thawed: str
    rest: str | None


def thaw(held: Selector, by: Selector, entities: Entities) -> Pieces[Thaw | None]:
    """Take `by` out of what is held; None where they have nothing in common.

    Where what is held names its nodes one by one, what is left does so too.

    >>> from haptera.planner.domain.pieces import at_once
    >>> from haptera.selectors.selector import parse_selector
    >>> at_once(thaw(parse_selector("rack1n[1-4]"), parse_selector("rack*n2"), {}))
    Thaw(thawed='rack1n2', rest='rack1n[1,3-4]')
    >>> declared = {node_id("rack1n1"): {}, node_id("rack1n2"): {}}
    >>> at_once(thaw(parse_selector("rack1*"), parse_selector("rack1n2"), declared))
    Thaw(thawed='rack1n2', rest='rack1* and not rack1n2')

    Raises:
        HapteraError: what is left is too long for a rule.
    """
    if by.text in (ALL, held.text):
        return Thaw(held.text, None)
    mine = yield from _meant(held, entities)
    if isinstance(held.choice, Pattern) and isinstance(by.choice, Pattern) and by.by_name:
        nodes, names = held.choice.on, held.choice.names
        if _covers_names(held.choice, by.choice, mine) and nodes is not None and nodes.plain:
            return _split(held, by, nodes, by.choice.on, _on_nodes)
        alike = held.choice.kind == by.choice.kind and names is not None and names.plain
        if alike and names is not None and _covers_nodes(by.choice, mine):
            return _split(held, by, names, by.choice.names, _named)
    taken = yield from _meant(by, entities)
    return _joined(held, by, mine, taken)


def _meant(selector: Selector, entities: Entities) -> Pieces[list[EntityId]]:
    found = list[EntityId]()
    for some in slices(entities, READ_AT_ONCE):
        subjects = (Declared(one, lambda name: entities.get(node_id(name))) for one in some)
        found += (one.id for one in subjects if selector.means(one))
        yield READING_EACH * len(some)
    return found


def _covers_names(held: Pattern, by: Pattern, mine: Iterable[EntityId]) -> bool:
    """Whether on nodes that both select, all that is held is thawed."""
    if by.kind is None or by.kind == held.kind == NODE:
        return True
    if by.kind != held.kind or by.names is None:
        return by.kind == held.kind
    names = (
        [one.name for one in held.names.members()]
        if held.names is not None and held.names.plain
        else [one.name for one in mine]
    )
    return all(by.names.has(one) for one in names)


def _covers_nodes(by: Pattern, mine: Iterable[EntityId]) -> bool:
    nodes = by.on
    return nodes is None or all(one.node is not None and nodes.has(one.node) for one in mine)


def _split(
    held: Selector,
    by: Selector,
    names: NodeSet,
    taken: NodeSet | None,
    write: Callable[[Selector, Iterable[str]], str],
) -> Thaw | None:
    """Take these names out, one by one; unless what is left is then too long to be written so."""
    mine = [one.name for one in names.members()]
    thawed = [name for name in mine if taken is None or taken.has(name)]
    if not thawed:
        return None
    if len(thawed) == len(mine):
        return Thaw(held.text, None)
    left = write(held, set(mine) - set(thawed))
    if len(left.encode()) > OF_BYTES_MAX:
        left = f"{held} and not {by}"
    return Thaw(write(held, thawed), _checked(held, left))


def _joined(
    held: Selector, by: Selector, mine: Collection[EntityId], taken: Collection[EntityId]
) -> Thaw | None:
    """Leave all of mine but what is taken."""
    thawed = set(mine) & set(taken)
    if not thawed:
        return None
    if len(thawed) == len(mine):
        return Thaw(held.text, None)
    left = f"({held})" if isinstance(held.choice, AnyOf) else held.text
    right = f"({by})" if isinstance(by.choice, AllOf | AnyOf) else by.text
    told = by.text if len(thawed) == len(taken) else f"{left} and {right}"
    return Thaw(told, _checked(held, f"{left} and not {right}"))


def _checked(held: Selector, left: str) -> str:
    if len(left.encode()) > OF_BYTES_MAX:
        what = f"what stays frozen of {held} is longer than {OF_BYTES_MAX} bytes"
        raise HapteraError(
            what, do=f"thaw {held}, then freeze what should stay frozen", code=Code.LIMIT
        )
    return left


def _on_nodes(held: Selector, nodes: Iterable[str]) -> str:
    """The same as is held, on these nodes only."""
    assert isinstance(held.choice, Pattern)
    if held.choice.kind is None:
        return fold(nodes)
    if held.choice.kind == NODE:
        return f"{NODE}:{fold(nodes)}"
    return f"{held.text.partition('@')[0]}@{fold(nodes)}"


def _named(held: Selector, names: Iterable[str]) -> str:
    """The same as is held, of these names only."""
    assert isinstance(held.choice, Pattern)
    _, at, nodes = held.text.partition("@")
    return f"{held.choice.kind}:{fold(names)}{at}{nodes}"
