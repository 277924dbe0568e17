"""Drawings in DOT, the language of Graphviz."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from haptera.cli.output.drawing import words
from haptera.model.answers.graph import CourseView, DrawingView, EdgeView, GraphView

INDENT: Final = "  "
COLOURS: Final = {"now": "#1d4ed8", "goal": "#15803d", "harm": "#c2410c"}


def dot(drawing: DrawingView) -> str:
    """A drawing as one directed graph; each of its graphs is a cluster."""
    head = words.heading(drawing)
    font = {"fontname": "monospace", "fontsize": "11"}
    lines = [
        f"digraph {_quoted(words.title(drawing))} {{",
        f"{INDENT}graph {_all({'label': _lines(head), 'labelloc': 't', **font})};",
        f"{INDENT}node {_all({'shape': 'box', 'style': 'rounded', **font})};",
        f"{INDENT}edge {_all(font)};",
    ]
    for number, graph in enumerate(drawing.graphs):
        lines.append(f"{INDENT}subgraph cluster{number} {{")
        lines += (f"{INDENT * 2}{line};" for line in _graph(number, graph, drawing.course))
        lines.append(f"{INDENT}}}")
    return "\n".join([*lines, "}\n"])


def _graph(number: int, graph: GraphView, course: CourseView | None) -> Iterator[str]:
    head = [", ".join(map(words.cut, graph.variables)), *words.above(graph)]
    yield f"graph {_all({'label': _lines(head), 'labeljust': 'l'})}"
    for place in range(len(graph.states)):
        yield f"s{number}_{place} {_all(_state(graph, course, place))}"
    for edge in graph.edges:
        ends = f"s{number}_{edge.source} -> s{number}_{edge.target}"
        yield f"{ends} {_all(_edge(graph, course, edge))}"


def _state(graph: GraphView, course: CourseView | None, place: int) -> Mapping[str, str]:
    known = [words.cut(f"{name} {value}") for name, value in graph.states[place].items()]
    lines = [*words.tags(graph, place), *known, *words.memories(graph, course, place)]
    style = {"label": _lines(lines)}
    if place in graph.path:
        style |= {"color": COLOURS["now"], "penwidth": "2"}
    if place in graph.goal:
        style |= {"color": COLOURS["goal"], "peripheries": "2"}
    return style


def _edge(graph: GraphView, course: CourseView | None, edge: EdgeView) -> Mapping[str, str]:
    mark = "".join(f"{number}. " for number in edge.links)
    style = {"label": _lines([f"{mark}{words.part(edge)}", *words.notes(graph, edge)])}
    if edge.does == "look":
        style["style"] = "dotted" if words.hopes(edge, course) else "dashed"
    if edge.disruptive:
        style |= {"color": COLOURS["harm"], "fontcolor": COLOURS["harm"]}
    if edge.links:
        style |= {"color": COLOURS["now"], "penwidth": "2.5"}
    return style


def _all(attributes: Mapping[str, str]) -> str:
    """Attributes as DOT has them."""
    return "[" + ", ".join(f"{name}={_quoted(value)}" for name, value in attributes.items()) + "]"


def _lines(lines: Sequence[str]) -> str:
    """Lines to the left below each other; what Graphviz would read as an escape is none."""
    return "".join(one.replace("\\", "\\\\") + "\\l" for one in lines)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
