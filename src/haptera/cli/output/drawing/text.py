"""Lines of text as SVG: how wide they are, and how they are written."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Final
from unicodedata import combining, east_asian_width

from haptera.cli.output.drawing.shapes import Point, Size

# A letter's width over its size, in a font in which all are as wide.
LETTER: Final = 0.602
LINE: Final = 1.38
PLAIN: Final = 12.0
SMALL: Final = 10.5


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text: its spans, each with its class, and its size."""

    spans: tuple[tuple[str, str], ...]
    size: float = PLAIN

    @property
    def width(self) -> float:
        return sum(_letters(text) for text, _ in self.spans) * LETTER * self.size

    @property
    def height(self) -> float:
        return LINE * self.size


def line(text: str, kind: str = "", size: float = PLAIN) -> Line:
    return Line(((text, kind),), size)


def size_of(lines: Collection[Line]) -> Size:
    """How much room lines take below each other."""
    return Size(max((one.width for one in lines), default=0.0), sum(one.height for one in lines))


def below(lines: Iterable[Line], corner: Point) -> Iterator[str]:
    """Lines below each other, from an upper left corner on."""
    y = corner.y
    for one in lines:
        base = short(y + one.height / 2 + one.size * 0.35)
        size = short(one.size)
        yield f'<text x="{short(corner.x)}" y="{base}" font-size="{size}">{_spans(one)}</text>'
        y += one.height


def short(value: float) -> str:
    """As short as it can be read alike everywhere.

    >>> short(12.0), short(3.14159), short(-0.01)
    ('12', '3.1', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _spans(one: Line) -> str:
    return "".join(
        f'<tspan class="{kind}">{escape(text)}</tspan>' if kind else escape(text)
        for text, kind in one.spans
    )


def _letters(text: str) -> int:
    """How many columns a text takes: some letters are two wide, some stand above others."""
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)
