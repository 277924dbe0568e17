"""Checks of relations between kinds, and of the parts that name them."""

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter

from haptera.model.declared.schema import Kind
from haptera.model.errors import DeclarationError
from haptera.model.parts import Context, Part


def check_relations(kinds: Mapping[str, Kind]) -> frozenset[str]:
    """The kinds that others are related to.

    Raises:
        DeclarationError: a relation is to no entity of the whole cluster, or by an attribute that
            is not there, or kinds are related in a circle.
    """
    graph: dict[str, set[str]] = {}
    for kind in kinds.values():
        for one in kind.related:
            other, of = kinds.get(one.variable.kind), kinds.get(one.by.kind)
            if other is None or not other.of_cluster or other.variable(one.variable.name) is None:
                what = f"{one}: {one.variable.path} is no variable of a kind of the whole cluster"
                raise DeclarationError(what, where=f"kind {kind.name}")
            if (
                of is None
                or of.attribute(one.by.name) is None
                or of.name not in (kind.name, "node")
            ):
                what = f"{one}: {one.by.name} is no attribute of it or of its node"
                raise DeclarationError(what, where=f"kind {kind.name}")
            graph.setdefault(kind.name, set()).add(other.name)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " needs ".join(reversed(error.args[1]))
        what = f"kinds depend on each other in a circle: {circle}"
        raise DeclarationError(what, do="remove one of the relations") from None
    return frozenset(name for names in graph.values() for name in names)


def check_sides(kind: Kind, parts: Collection[Part]) -> None:
    """See that parts that name what is related run where it is known: agents do not have it.

    Raises:
        DeclarationError: one runs on the node.
    """
    names = {str(one) for one in kind.related}
    for part in parts:
        named = [one.name for one in (*part.requires, *part.excludes) if one.name in names]
        if named and part.context is Context.SELF:
            what = f"{part.path} runs on nodes, which are not told of {named[0]}"
            raise DeclarationError(what, where=f"module {part.module}", do="run it at the parent")
