"""One graph as SVG: boxes for what is known, arrows for what is done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from haptera.cli.output.drawing import words
from haptera.cli.output.drawing.layout import Layout, lay_out
from haptera.cli.output.drawing.shapes import Arrow, Point, Size
from haptera.cli.output.drawing.text import SMALL, Line, below, line, short, size_of
from haptera.model.graph import CourseView, EdgeView, GraphView

PAD: Final = 9.0
ROUND: Final = 6.0
HEAD: Final = 13.0
TIP: Final = 8.0
TIP_HALF: Final = 3.6
MARGIN: Final = 16.0


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph drawn, from its upper left corner on."""

    size: Size
    elements: list[str]


@dataclass(frozen=True, slots=True)
class _Bundle:
    """Edges drawn as one arrow: between the same boxes, in the same style."""

    source: int
    target: int
    kind: str
    lines: list[Line]


def panel(graph: GraphView, course: CourseView | None, *, headed: bool) -> Panel:
    """Draw a graph; `headed` by its variables where it is one of several."""
    head = [line(", ".join(map(words.cut, graph.variables)), "head", HEAD)] if headed else []
    head += [line(one, "faint", SMALL) for one in words.above(graph)]
    boxes = [_box(graph, course, place) for place in range(len(graph.states))]
    bundles = _bundles(graph, course)
    layout = lay_out(
        [_padded(size_of(lines)) for lines in boxes],
        [Arrow(one.source, one.target, size_of(one.lines)) for one in bundles],
        graph.path,
    )
    top = MARGIN + size_of(head).height + (PAD if head else 0)
    left = MARGIN + max(0.0, (size_of(head).width - layout.size.width) / 2)
    width = max(layout.size.width, size_of(head).width) + 2 * MARGIN
    size = Size(width, top + layout.size.height + MARGIN)
    elements = [
        f'<rect class="paper" width="{short(size.width)}" height="{short(size.height)}" rx="8"/>',
        *below(head, Point(MARGIN, MARGIN)),
        f'<g transform="translate({short(left)} {short(top)})">',
        *_drawn(graph, boxes, bundles, layout),
        "</g>",
    ]
    return Panel(size, elements)


def _drawn(
    graph: GraphView, boxes: Sequence[list[Line]], bundles: Sequence[_Bundle], layout: Layout
) -> Iterator[str]:
    for bundle, route in zip(bundles, layout.routes, strict=True):
        yield from _arrow(bundle.kind, route)
    for bundle, middle in zip(bundles, layout.labels, strict=True):
        yield from _label(bundle.lines, middle)
    for place, (lines, middle) in enumerate(zip(boxes, layout.boxes, strict=True)):
        yield from _boxed(lines, middle, _standing(graph, place), met=place in graph.goal)


def _box(graph: GraphView, course: CourseView | None, place: int) -> list[Line]:
    """What stands in a box; what leads back to it stands in it too, for it moves nothing."""
    tags = words.tags(graph, place)
    lines = [line(" · ".join(tags), "tag", SMALL)] if tags else []
    lines += [
        Line(((f"{words.cut(name)} ", "faint"), (words.cut(value), "value")))
        for name, value in graph.states[place].items()
    ]
    lines += [line(one, "memory") for one in words.memories(graph, course, place)]
    for edge in graph.edges:
        if edge.source == edge.target == place:
            lines += _told(graph, edge, words.BACK)
    return lines


def _bundles(graph: GraphView, course: CourseView | None) -> list[_Bundle]:
    """The edges between two boxes as arrows; those of the chain first, in its order."""
    found: dict[tuple[int, int, str], _Bundle] = {}
    for edge in sorted(graph.edges, key=lambda edge: edge.links or [len(graph.path)]):
        if edge.source != edge.target:
            key = edge.source, edge.target, _kind(edge, course)
            found.setdefault(key, _Bundle(*key, [])).lines.extend(_told(graph, edge))
    return list(found.values())


def _kind(edge: EdgeView, course: CourseView | None) -> str:
    """The classes of an arrow."""
    kinds = {
        edge.does: True,
        "disruptive": edge.disruptive,
        "chain": bool(edge.links),
        "hoped": words.hopes(edge, course),
    }
    return " ".join(kind for kind, is_so in kinds.items() if is_so)


def _told(graph: GraphView, edge: EdgeView, sign: str = "") -> Iterator[Line]:
    kind = "harm" if edge.disruptive else "taken" if edge.links else ""
    mark = "".join(f"{number}. " for number in edge.links)
    yield Line(((f"{sign}{mark}", "tag"), (words.part(edge), kind)), SMALL)
    for note in words.notes(graph, edge):
        yield line(note, "faint", SMALL)


def _standing(graph: GraphView, place: int) -> str:
    """The style of a box: where the chain begins, ends, or passes."""
    if place in graph.path[:1]:
        return "now"
    if place in graph.goal:
        return "goal"
    return "passed" if place in graph.path else ""


def _boxed(lines: Sequence[Line], middle: Point, standing: str, *, met: bool) -> Iterator[str]:
    size = _padded(size_of(lines))
    x, y = middle.x - size.width / 2, middle.y - size.height / 2
    yield _rect(x, y, size, f"box {standing}".strip())
    if met:
        yield _rect(x + 3, y + 3, Size(size.width - 6, size.height - 6), "inner")
    yield from below(lines, Point(x + PAD, y + PAD))


def _label(lines: Sequence[Line], middle: Point) -> Iterator[str]:
    size = size_of(lines)
    x, y = middle.x - size.width / 2, middle.y - size.height / 2
    yield _rect(x, y, size, "halo")
    yield from below(lines, Point(x, y))


def _arrow(kind: str, route: Sequence[Point]) -> Iterator[str]:
    end, down = route[-1], 1 if route[-1].y > route[-2].y else -1
    base = Point(end.x, end.y - down * TIP)
    path = [f"M{_at(route[0])}"]
    for one, other in zip(route, [*route[1:-1], base], strict=False):
        between = (one.y + other.y) / 2
        turns = f"C{_at(Point(one.x, between))} {_at(Point(other.x, between))} {_at(other)}"
        path.append(f"L{_at(other)}" if one.x == other.x else turns)
    yield f'<path class="line {kind}" d="{"".join(path)}"/>'
    left, right = Point(end.x - TIP_HALF, base.y), Point(end.x + TIP_HALF, base.y)
    yield f'<path class="tip {kind}" d="M{_at(end)}L{_at(left)}L{_at(right)}Z"/>'


def _rect(x: float, y: float, size: Size, kind: str) -> str:
    place = f'x="{short(x)}" y="{short(y)}"'
    extent = f'width="{short(size.width)}" height="{short(size.height)}"'
    return f'<rect class="{kind}" {place} {extent} rx="{short(ROUND)}"/>'


def _padded(size: Size) -> Size:
    return Size(size.width + 2 * PAD, size.height + 2 * PAD)


def _at(point: Point) -> str:
    return f"{short(point.x)} {short(point.y)}"
