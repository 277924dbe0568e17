"""Drawings in words: what stands in boxes, at arrows, and above a graph."""

from collections.abc import Iterator
from typing import Final

from haptera.cli.output.words import printable
from haptera.model.answers.graph import Conditions, CourseView, DrawingView, EdgeView, GraphView

# Characters of a name or a line of words; what is longer is cut.
NAME_CHARS_MAX: Final = 48
LINE_CHARS_MAX: Final = 96

NOTHING: Final = "nothing known"


def cut(text: str, chars_max: int = LINE_CHARS_MAX) -> str:
    """The text in one line, with what can be shown of it."""
    shown = printable(text)
    return shown if len(shown) <= chars_max else f"{shown[: chars_max - 1]}…"


def title(drawing: DrawingView) -> str:
    """The subject of a drawing, and its class.

    >>> title(DrawingView(title="node", attributes={"platform": "x"}, form="whole", graphs=[]))
    'node, platform=x'
    """
    given = (f"{name}={'-' if one is None else one}" for name, one in drawing.attributes.items())
    return cut(", ".join([drawing.title, *given]))


def heading(drawing: DrawingView) -> list[str]:
    """What is said above a drawing."""
    lines = [title(drawing)]
    if not drawing.graphs:
        lines.append("no part of this class looks at anything or changes it")
    return [*lines, *(chain(drawing.course) if drawing.course is not None else ())]


def tags(graph: GraphView, place: int) -> list[str]:
    """What a state is marked as."""
    marked = {"now": place in graph.path[:1], "goal": place in graph.goal}
    return [tag for tag, is_so in marked.items() if is_so]


def memories(graph: GraphView, course: CourseView | None, place: int) -> list[str]:
    """What is remembered in a state as the chain comes by; or else that nothing is known there."""
    passing = zip(course.states if course else (), graph.path, strict=False)
    found = (
        cut(f"{name} {value}?")
        for state, passed in passing
        for name, value in state.remembered.items()
        if passed == place and name in graph.variables
    )
    return list(dict.fromkeys(found)) or ([] if graph.states[place] else [NOTHING])


def part(edge: EdgeView) -> str:
    """What is done: a look with what it expects, a step; and what it costs."""
    expect = "" if edge.expect is None else f" = {edge.expect}"
    return f"{cut(edge.part + expect, NAME_CHARS_MAX)} · {edge.cost}"


def shared(graph: GraphView) -> tuple[Conditions, Conditions]:
    """What all steps of a graph require and exclude, where there are several."""
    steps = {edge.part: edge for edge in graph.edges if edge.does == "step"}.values()
    if len(steps) < 2:
        return {}, {}
    return _common([edge.requires for edge in steps]), _common([edge.excludes for edge in steps])


def hopes(edge: EdgeView, course: CourseView | None) -> bool:
    """Whether an edge is a link of the marked chain that hopes."""
    chain = () if course is None or course.chain is None else course.chain
    return any(chain[number - 1].hoped for number in edge.links)


def notes(graph: GraphView, edge: EdgeView) -> Iterator[str]:
    """What must be so besides for an edge to be taken, and what else comes of it.

    What stands above the graph is left out, and so is what holds for all looks: what is
    remembered they find again.
    """
    requires, excludes = shared(graph)
    if edge.does == "step":
        yield from _while(_less(edge.requires, requires))
        yield from _unless(_less(edge.excludes, excludes))
    else:
        yield from _unless(edge.excludes)
    for name, ways in edge.memory.items():
        if edge.does == "step" or graph.states[edge.target].get(name) != edge.expect:
            yield from _remembered(graph, name, ways)
    for name, value in edge.leaves.items():
        yield cut(f"leaves {name}={value}?")
    for name, (sources, target) in edge.beside.items():
        yield cut(f"with {name} {'|'.join(sources)} → {target}")


def above(graph: GraphView) -> Iterator[str]:
    """What is to be said of a whole graph."""
    together: dict[str, list[str]] = {}
    for name in graph.variables:
        for rests in _rests(graph, name):
            together.setdefault(rests, []).append(name)
    for rests, names in together.items():
        yield cut(f"{', '.join(names)}: known {rests}")
    requires, excludes = shared(graph)
    for told in (*_while(requires), *_unless(excludes)):
        yield cut(f"all steps {told}")
    if not graph.exact:
        yield "too many combinations of other variables: they are assumed to be as needed"


def chain(course: CourseView) -> Iterator[str]:
    """What is wanted, and the marked chain or why there is none."""
    wanted = _listed({name: [value] for name, value in course.goal.items()})
    if course.chain is None:
        yield cut(f"wanted: {wanted}" if wanted else "nothing is wanted")
        yield from () if course.reason is None else (cut(f"no chain: {course.reason}"),)
        return
    doubts = ", if a remembered value is wrong" if course.doubts else ""
    yield cut(f"wanted: {wanted}; the chain costs {course.cost}{doubts}")
    for number, one in enumerate(course.chain, start=1):
        does = "" if one.expect is None else f", {'hoping for' if one.hoped else 'expecting'} "
        yield cut(f"{number}. {one.part}{does}{one.expect or ''}")


def _rests(graph: GraphView, name: str) -> list[str]:
    """What knowing a variable rests on: look by look, if they differ."""
    looks = {rest.look: _listed(rest.requires) for rest in graph.rests if rest.variable == name}
    if len(set(looks.values())) == 1:
        return [f"only while {next(iter(looks.values()))}"]
    return [f"by {look}{rests and f' only while {rests}'}" for look, rests in looks.items()]


def _remembered(graph: GraphView, name: str, ways: list[str]) -> Iterator[str]:
    unknown, *values = graph.variables[name]
    barred = [one for one in (unknown, *(f"{value}?" for value in values)) if one not in ways]
    if len(barred) <= len(ways):
        yield from _unless({name: barred})
    else:
        yield cut(f"if {_listed({name: ways})}")


def _while(conditions: Conditions) -> Iterator[str]:
    if conditions:
        yield cut(f"while {_listed(conditions)}")


def _unless(conditions: Conditions) -> Iterator[str]:
    if conditions:
        yield cut(f"unless {_listed(conditions, ' or ')}")


def _listed(conditions: Conditions, joint: str = " and ") -> str:
    return joint.join(f"{name}={'|'.join(values)}" for name, values in conditions.items())


def _common(conditions: list[Conditions]) -> Conditions:
    first, *others = conditions
    return {
        name: values
        for name, values in first.items()
        if all(one.get(name) == values for one in others)
    }


def _less(conditions: Conditions, told: Conditions) -> Conditions:
    return {name: values for name, values in conditions.items() if name not in told}
