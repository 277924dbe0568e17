"""Drawings as SVG: of the same drawing always the same text."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from haptera.cli.output.drawing import words
from haptera.cli.output.drawing.panel import Panel, panel
from haptera.cli.output.drawing.shapes import Point, Size
from haptera.cli.output.drawing.style import style
from haptera.cli.output.drawing.text import SMALL, Line, below, line, short, size_of
from haptera.model.graph import DrawingView

MARGIN: Final = 16.0
HEAD: Final = 15.0
# Graphs stand beside each other as far as they fit.
WIDTH_MAX: Final = 1_200.0
SAMPLE: Final = 30.0


def svg(drawing: DrawingView) -> str:
    """A drawing as a document of its own."""
    title, *others = words.heading(drawing)
    head = [line(title, "head", HEAD), *map(line, others)]
    headed = len(drawing.graphs) > 1
    panels = [panel(graph, drawing.course, headed=headed) for graph in drawing.graphs]
    corners = _corners(panels, 2 * MARGIN + size_of(head).height)
    legend = list(_legend(drawing))
    width, height = MARGIN + size_of(head).width, MARGIN + size_of(head).height
    for one, corner in zip(panels, corners, strict=True):
        width = max(width, corner.x + one.size.width)
        height = max(height, corner.y + one.size.height)
    foot = Point(MARGIN, height + MARGIN)
    size = Size(max(width, foot.x + _legend_width(legend)) + MARGIN, foot.y + 2 * MARGIN)
    return "\n".join(
        [
            *_opened(drawing, size),
            *below(head, Point(MARGIN, MARGIN)),
            *(one for each in map(_put, panels, corners) for one in each),
            *_legend_at(legend, foot),
            "</svg>\n",
        ]
    )


def _opened(drawing: DrawingView, size: Size) -> Iterator[str]:
    width, height = short(size.width), short(size.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" xml:space="preserve"'
        ' role="img" aria-labelledby="title desc">'
    )
    yield f'<title id="title">{escape(words.title(drawing))}</title>'
    yield f'<desc id="desc">{escape(" ".join(words.described(drawing)))}</desc>'
    yield f"<style>\n{style()}</style>"
    yield f'<rect class="paper" width="{width}" height="{height}" rx="10"/>'


def _corners(panels: Sequence[Panel], top: float) -> list[Point]:
    """The upper left corner of each, shelf by shelf."""
    corners = [Point(MARGIN, top)] * len(panels)
    for shelf in _shelves(panels):
        x = MARGIN
        for place in shelf:
            corners[place] = Point(x, top)
            x += panels[place].size.width + MARGIN
        top += max(panels[place].size.height for place in shelf) + MARGIN
    return corners


def _shelves(panels: Sequence[Panel]) -> list[list[int]]:
    """Each panel on the first shelf that has room left for it."""
    shelves: list[list[int]] = []
    for place, one in enumerate(panels):
        room = WIDTH_MAX - one.size.width
        wide = ([panels[other].size.width + MARGIN for other in shelf] for shelf in shelves)
        fits = (shelf for shelf, widths in zip(shelves, wide, strict=True) if sum(widths) <= room)
        shelf = next(fits, None)
        if shelf is None:
            shelves.append([place])
        else:
            shelf.append(place)
    return shelves


def _put(one: Panel, corner: Point) -> list[str]:
    return [
        f'<g transform="translate({short(corner.x)} {short(corner.y)})">',
        *one.elements,
        "</g>",
    ]


def _legend(drawing: DrawingView) -> Iterator[tuple[str, Line]]:
    """The styles of the arrows that there are, and what each means."""
    edges = [edge for graph in drawing.graphs for edge in graph.edges]
    meanings = {
        "step": (any(edge.does == "step" for edge in edges), "step"),
        "look": (any(edge.does == "look" for edge in edges), "look"),
        "step disruptive": (any(edge.disruptive for edge in edges), "disruptive step"),
        "chain": (any(edge.links for edge in edges), "chain"),
        "look chain hoped": (any(words.hopes(edge, drawing.course) for edge in edges), "hope"),
    }
    for kind, (is_there, meaning) in meanings.items():
        if is_there:
            yield kind, line(meaning, "faint", SMALL)


def _legend_width(legend: Sequence[tuple[str, Line]]) -> float:
    return sum(SAMPLE + 2 * MARGIN + told.width for _, told in legend)


def _legend_at(legend: Sequence[tuple[str, Line]], corner: Point) -> Iterator[str]:
    x = corner.x
    for kind, told in legend:
        middle = short(corner.y + told.height / 2)
        yield f'<path class="line {kind}" d="M{short(x)} {middle}h{short(SAMPLE)}"/>'
        yield from below([told], Point(x + SAMPLE + MARGIN / 2, corner.y))
        x += SAMPLE + 2 * MARGIN + told.width
