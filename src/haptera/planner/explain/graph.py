"""A class as graphs: what can be known, and the moves between; in several where one is large."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Final, NamedTuple

from haptera.model.errors import HapteraError
from haptera.planner.domain.bitstate import Field, Operator
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.knowable_states import after, around, knowable_states, may, not_known
from haptera.planner.domain.task import joined

# States of a graph of several variables; what would have more is drawn as several graphs.
STATES_MAX: Final = 16
# States of a group and all that it depends on, looked into to find what can come about.
AROUND_MAX: Final = 4_096
# Times that a move is tried in one of them; where there are many moves, fewer are looked into.
TRIES_MAX: Final = 400_000
EDGES_MAX: Final = 1_024


class Edge(NamedTuple):
    """A move between two states, by their places."""

    source: int
    target: int
    move: Operator


@dataclass(frozen=True, eq=False)
class Graph:
    """Some variables: all that can be known of them (core/steady), and the moves between.

    Where not `exact`, what these depend on was not looked into, but taken to be as it must.
    """

    fields: tuple[Field, ...]
    states: tuple[int, ...]
    edges: tuple[Edge, ...]
    exact: bool

    @cached_property
    def bits(self) -> int:
        return _bits(self.fields)

    @cached_property
    def places(self) -> dict[int, int]:
        return {state: place for place, state in enumerate(self.states)}

    def place(self, word: int) -> int:
        """Where in this graph a state of the whole class is."""
        return self.places[sum(word & one.known or not_known(one) for one in self.fields)]


def graphs_of(
    domain: Domain, *, states_max: int = STATES_MAX, around_max: int = AROUND_MAX
) -> list[Graph]:
    """One graph of all that moves, or one of each group of variables that steps change together.

    A group that is too large itself is drawn variable by variable. What no part changes or looks
    at, a borrowed variable say, is in none.

    Raises:
        HapteraError: a graph has more edges than can be drawn.
    """
    moved = reduce(or_, (move.touches for move in domain.moves), 0)
    fields = _fields(domain, moved)
    if not fields:
        return []
    if (graph := _exact(domain, fields, states_max, around_max)) is not None:
        return [graph]
    groups = [_fields(domain, bits) for bits in joined(move.touches for move in domain.moves)]
    order = list(domain.fields)
    groups.sort(key=lambda group: order.index(group[0].name))
    return [one for group in groups for one in _told(domain, group, states_max, around_max)]


def _told(
    domain: Domain, group: tuple[Field, ...], states_max: int, around_max: int
) -> Iterator[Graph]:
    """A group in one graph, or each of its variables, whatever number of values that has."""
    if len(group) > 1:
        graph = _exact(domain, group, states_max, around_max)
        if graph is not None:
            yield graph
            return
    for field in group:
        graph = _exact(domain, (field,), len(field.values), around_max)
        yield graph or _loose(domain, field)


def _exact(
    domain: Domain, fields: tuple[Field, ...], states_max: int, around_max: int
) -> Graph | None:
    """The graph of all that can come about; None where there is too much of it."""
    bits = _bits(fields)
    within = around(domain, bits)
    moves = sum(bool(move.touches & bits) for move in domain.moves)
    words = knowable_states(domain, within, min(around_max, TRIES_MAX // moves))
    if words is None or len({word & bits for word in words}) > states_max:
        return None
    return _graph(domain, fields, words, within, exact=True)


def _loose(domain: Domain, field: Field) -> Graph:
    """One variable, with all others as they must be for what is known of it."""
    words = knowable_states(domain, field.whole, len(field.values))
    assert words is not None
    return _graph(domain, (field,), words, field.whole, exact=False)


def _graph(
    domain: Domain, fields: tuple[Field, ...], words: Sequence[int], within: int, *, exact: bool
) -> Graph:
    bits = _bits(fields)
    states = sorted({word & bits for word in words}, key=lambda state: _order(fields, state))
    places = {state: place for place, state in enumerate(states)}
    edges = set()
    for number, move in enumerate(domain.moves):
        if not move.touches & bits:
            continue
        for word in words:
            if may(domain, word, move, within):
                there = after(domain, word, move, within)
                edges.add((places[word & bits], places[there & bits], number))
        if len(edges) > EDGES_MAX:
            raise HapteraError(
                f"more than {EDGES_MAX} edges cannot be drawn",
                where=", ".join(field.name for field in fields),
                do="draw a class with fewer parts or values",
            )
    found = (Edge(source, target, domain.moves[one]) for source, target, one in sorted(edges))
    return Graph(fields, tuple(states), tuple(found), exact)


def _order(fields: tuple[Field, ...], state: int) -> list[int]:
    """States in the order of their variables' values, the unknown first."""
    return [state & field.known for field in fields]


def _fields(domain: Domain, bits: int) -> tuple[Field, ...]:
    return tuple(field for field in domain.fields.values() if field.whole & bits)


def _bits(fields: Sequence[Field]) -> int:
    return sum(field.whole for field in fields)
