"""Drawings in Mermaid, which pages of code and documents draw by themselves."""

from collections.abc import Iterator, Sequence

from haptera.cli.output.drawing import words
from haptera.cli.output.drawing.dot import COLOURS
from haptera.model.answers.graph import CourseView, DrawingView, EdgeView, GraphView


def mermaid(drawing: DrawingView) -> str:
    """A drawing as one flowchart; each of its graphs is a subgraph."""
    lines = ["flowchart TD"]
    lines += [f"  %% {line}" for line in words.heading(drawing)]
    lines += [f"  classDef {name} stroke:{COLOURS[name]},stroke-width:3px" for name in _MARKS]
    styles: list[str] = []
    for number, graph in enumerate(drawing.graphs):
        head = [", ".join(map(words.cut, graph.variables)), *words.above(graph)]
        lines.append(f"  subgraph g{number}[{_quoted(head)}]")
        lines += (f"    {line}" for line in _graph(number, graph, drawing.course, styles))
        lines.append("  end")
    lines += [f"  linkStyle {place} {style}" for place, style in enumerate(styles) if style]
    return "".join(f"{line}\n" for line in lines)


_MARKS = ("now", "goal")


def _graph(
    number: int, graph: GraphView, course: CourseView | None, styles: list[str]
) -> Iterator[str]:
    for place, state in enumerate(graph.states):
        known = [words.cut(f"{name} {value}") for name, value in state.items()]
        told = [*words.tags(graph, place), *known, *words.memories(graph, course, place)]
        mark = "goal" if place in graph.goal else "now" if place in graph.path else None
        yield f"s{number}_{place}[{_quoted(told)}]{'' if mark is None else f':::{mark}'}"
    for edge in graph.edges:
        ends = (f"s{number}_{place}" for place in (edge.source, edge.target))
        yield f" {_arrow(edge)}|{_label(graph, edge)}| ".join(ends)
        colour = COLOURS["now"] if edge.links else COLOURS["harm"] if edge.disruptive else None
        styles.append("" if colour is None else f"stroke:{colour}")


def _arrow(edge: EdgeView) -> str:
    if edge.links:
        return "==>"
    return "-.->" if edge.does == "look" else "-->"


def _label(graph: GraphView, edge: EdgeView) -> str:
    mark = "".join(f"{number}. " for number in edge.links)
    return _quoted([f"{mark}{words.part(edge)}", *words.notes(graph, edge)])


def _quoted(lines: Sequence[str]) -> str:
    """Lines below each other; what Mermaid or a page would read as more than a text is none."""
    escaped = "<br>".join(
        one.replace("#", "#35;")
        .replace("&", "#amp;")
        .replace('"', "#quot;")
        .replace("<", "#lt;")
        .replace(">", "#gt;")
        for one in lines
    )
    return f'"{escaped}"'
