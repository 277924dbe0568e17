"""Whether all that one selector can ever mean, another means too, for all that their texts tell."""

from haptera.selectors.nodeset import NodeSet
from haptera.selectors.selector import Selector
from haptera.selectors.selector_ast import AllOf, AnyOf, Choice, Not, Pattern


def covers(outer: Selector, inner: Selector) -> bool:
    """Whether `outer` means whatever `inner` may mean, now and later.

    Where the texts do not show it, it is denied; an `inner` that ends in `and (OUTER)` shows it.

    >>> from haptera.selectors.selector import parse_selector
    >>> rack1 = parse_selector("rack1n*")
    >>> covers(rack1, parse_selector("service:web@rack1n[1-4]"))
    True
    >>> covers(rack1, parse_selector("rack1n1,rack2n1"))
    False
    >>> covers(rack1, parse_selector("*n1")), covers(rack1, parse_selector("*n1 and rack1n*"))
    (False, True)
    """
    return _covers(outer.choice, inner.choice)


def _covers(outer: Choice, inner: Choice) -> bool:
    match outer, inner:
        case AllOf(parts), _:
            return all(_covers(part, inner) for part in parts)
        case _, AnyOf(parts):
            return all(_covers(outer, part) for part in parts)
        case _, AllOf(parts):
            return any(_covers(outer, part) for part in parts)
        case AnyOf(parts), _:
            return any(_covers(part, inner) for part in parts)
        case Not(excluded), Not(left_out):
            return _covers(left_out, excluded)
        case Not(excluded), Pattern():
            return _apart(excluded, inner)
        case Pattern(), Pattern():
            alike = outer.kind in (None, inner.kind)
            return alike and _has(outer.names, inner.names) and _has(outer.nodes, inner.on)
        case _:
            return False


def _has(outer: NodeSet | None, inner: NodeSet | None) -> bool:
    """Whether all names of one set are in the other; None is all names."""
    if outer is None or inner is None:
        return outer is None
    if inner.plain:
        return all(outer.has(one.name) for one in inner.members())
    return len(inner.steps) == len(outer.steps) == 1 and inner.terms == outer.terms


def _apart(one: Choice, other: Pattern) -> bool:
    """Whether no entity is meant by both."""
    match one:
        case AnyOf(parts):
            return all(_apart(part, other) for part in parts)
        case Pattern():
            if one.kind is not None and other.kind is not None and one.kind != other.kind:
                return True
            return _share_none(one.on, other.on)
        case _:
            return False


def _share_none(one: NodeSet | None, other: NodeSet | None) -> bool:
    if one is None or other is None or not other.plain:
        return False
    return not any(one.has(name.name) for name in other.members())
