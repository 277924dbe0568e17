"""Graphs as answers show them: what edges require of other variables, and what is marked."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from haptera.model.answers.graph import (
    Conditions,
    CourseView,
    DrawingView,
    EdgeView,
    GraphView,
    RestView,
    StateView,
    TakenView,
)
from haptera.model.chain import Chain, Find, Link, NoChain
from haptera.model.parts import Part, Requirement, Step
from haptera.planner.domain.bitstate import Field, Operator
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.knowable_states import not_known
from haptera.planner.explain.graph import Edge, Graph


@dataclass(frozen=True, slots=True)
class Course:
    """A stripped start, a goal, and what the planner answers; None where nothing is wanted."""

    start: int
    goal: Mapping[str, str]
    answer: Chain | NoChain | None

    @property
    def links(self) -> tuple[Link, ...]:
        return self.answer.links if isinstance(self.answer, Chain) else ()


def drawing(
    domain: Domain,
    graphs: Sequence[Graph],
    title: str,
    course: Course | None = None,
    *,
    named: Callable[[Part], str] = attrgetter("path"),
) -> DrawingView:
    """The graphs of a class with what is marked on them; `named` is what parts are called."""
    teller = _Teller(domain, named, course, _words(domain, course))
    return DrawingView(
        title=title,
        attributes=_mentioned(domain),
        form="factored" if len(graphs) > 1 else "whole",
        graphs=[teller.graph(one) for one in graphs],
        course=None if course is None else teller.told(course),
    )


def _words(domain: Domain, course: Course | None) -> tuple[int, ...]:
    """The start, and the state after each link of the chain."""
    if course is None:
        return ()
    words = [course.start]
    for link in course.links:
        # Moves of one link lead to the same, from wherever each may be taken.
        move = next(move for move in domain.moves if is_of(move, link))
        words.append(domain.strip((words[-1] & move.keep | move.put) & ~domain.touched))
    return tuple(words)


@dataclass(frozen=True, slots=True)
class _Teller:
    """Tells graphs of one class; `words` are the states along the chain."""

    domain: Domain
    named: Callable[[Part], str]
    course: Course | None
    words: tuple[int, ...]

    def graph(self, graph: Graph) -> GraphView:
        names = [field.name for field in graph.fields]
        path = [graph.place(word) for word in self.words]
        return GraphView(
            variables={field.name: list(field.values) for field in graph.fields},
            exact=graph.exact,
            rests=list(self._rests(names)),
            states=[self.domain.known(state) for state in graph.states],
            edges=[self._edge(graph, names, edge, path) for edge in graph.edges],
            goal=self._met(graph, names),
            path=path,
        )

    def told(self, course: Course) -> CourseView:
        known, remembered = self.domain.known, self.domain.remembered
        states = [StateView(known(word), remembered(word)) for word in self.words]
        goal = dict(course.goal)
        match course.answer:
            case Chain(links, _, cost, _, doubts):
                chain = [self._taken(link) for link in links]
                return CourseView(goal=goal, states=states, chain=chain, cost=cost, doubts=doubts)
            case NoChain(reason):
                return CourseView(goal=goal, states=states, reason=reason.text)
            case None:
                return CourseView(goal=goal, states=states)

    def _taken(self, link: Link) -> TakenView:
        if isinstance(link, Find):
            return TakenView(self.named(link.look), link.expect, link.hoped)
        return TakenView(self.named(link.step), None, hoped=False)

    def _met(self, graph: Graph, names: Iterable[str]) -> list[int]:
        """The states in which as much of the goal is met as there is of it in this graph."""
        goal = {} if self.course is None else self.course.goal
        here = {name: value for name, value in goal.items() if name in names}
        wanted = self.domain.wanted(here)
        states = enumerate(graph.states) if here else ()
        return [place for place, state in states if state & wanted == wanted]

    def _rests(self, names: Iterable[str]) -> Iterator[RestView]:
        """All looks at the variables that some look asks something of others for."""
        rests = [(look, self._others(look.requires, names)) for look in self.domain.looks]
        asking = {look.at for look, requires in rests if requires and look.at in names}
        for look, requires in rests:
            if look.at in asking:
                yield RestView(look.at, self.named(look), list(look.outcomes), requires)

    def _edge(self, graph: Graph, names: list[str], edge: Edge, path: list[int]) -> EdgeView:
        source, target, move = edge
        part = move.part
        return EdgeView(
            source=source,
            target=target,
            part=self.named(part),
            does="look" if isinstance(move.link, Find) else "step",
            expect=move.link.expect if isinstance(move.link, Find) else None,
            cost=part.cost,
            disruptive=isinstance(part, Step) and part.disruptive,
            requires=self._others(part.requires, names),
            excludes=self._others(part.excludes, names),
            memory=self._memory(graph, edge),
            leaves=_leaves(graph, edge),
            beside=_beside(part, names),
            links=self._links(edge, path),
        )

    def _others(self, conditions: Iterable[Requirement], names: Iterable[str]) -> Conditions:
        """The conditions on variables that are not among these."""
        fields = self.domain.fields
        others = (one for one in conditions if one.name in fields and one.name not in names)
        return {one.name: list(one.values) for one in others}

    def _memory(self, graph: Graph, edge: Edge) -> Conditions:
        found = {}
        for field in graph.fields:
            ways = graph.states[edge.source] & not_known(field)
            if ways & edge.move.forbidden:
                found[field.name] = list(_ways(field, ways & ~edge.move.forbidden))
        return found

    def _links(self, edge: Edge, path: list[int]) -> list[int]:
        """The links of the marked chain that this edge is."""
        links = () if self.course is None else self.course.links
        return [
            number
            for number, link in enumerate(links, start=1)
            if path[number - 1 : number + 1] == [edge.source, edge.target]
            and is_of(edge.move, link)
        ]


def is_of(move: Operator, link: Link) -> bool:
    """Whether a move is this link: the same part, and the same expectation."""
    if isinstance(move.link, Find) and isinstance(link, Find):
        return (move.link.look, move.link.expect) == (link.look, link.expect)
    return move.link == link


def _ways(field: Field, bits: int) -> Iterator[str]:
    """Ways not to be known, as they are written."""
    if bits & field.unknown:
        yield field.values[0]
    for value in field.values[1:]:
        if bits & field.holding((value,)) << field.width:
            yield f"{value}?"


def _leaves(graph: Graph, edge: Edge) -> dict[str, str]:
    """What was changed, but is not known after."""
    changed = (field for field in graph.fields if field.whole & edge.move.touches)
    lost = [field for field in changed if graph.states[edge.target] & not_known(field)]
    put = edge.move.put
    told = {field.name: field.value(put) or field.memory(put) for field in lost}
    return {name: value for name, value in told.items() if value is not None}


def _beside(part: Part, names: Iterable[str]) -> dict[str, tuple[list[str], str]]:
    """What a step changes of variables that are not among these."""
    changes = part.changes if isinstance(part, Step) else ()
    return {
        one.variable: (list(one.sources), f"{one.target}{'?' if one.expected else ''}")
        for one in changes
        if one.variable not in names
    }


def _mentioned(domain: Domain) -> dict[str, str | None]:
    """The attributes that parts of any class ask for, as this one has them."""
    parts = domain.problem.parts
    asked = {one.name for part in parts for one in (*part.requires, *part.excludes)}
    return {name: one for name, one in domain.problem.attributes.items() if name in asked}
