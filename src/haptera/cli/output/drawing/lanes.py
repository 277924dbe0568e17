"""Bars along the time as a picture: a line for each name, and marks across all lines."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from haptera.cli.output.drawing.words import cut
from haptera.model.walltime import duration

# In pixels, but for what says otherwise.
WIDTH: Final = 960
ROW: Final = 22
TICKS: Final = 6
_TOP: Final = 62
_BAR: Final = 16
_EDGE: Final = 12
# Of a letter, on average; a name column is as wide as its longest name.
_LETTER: Final = 6.2
# What takes no time to speak of is seen nevertheless.
_BAR_MIN: Final = 1.5
# A label is written into a bar with room for so many letters of it.
_LABEL_LETTERS_MIN: Final = 12
_TITLE_LETTERS_MAX: Final = 400
_MS_PER_S: Final = 1_000


class Bar(NamedTuple):
    """A time within a lane, in seconds, of a sort that has a colour.

    `words` are shown on hovering, the `label` in the bar itself.
    """

    sort: str
    from_s: float
    to_s: float
    words: str
    label: str = ""


class LaneChart(NamedTuple):
    """A picture's content: bars by name, remarks of all at their time, colours by sort of bar."""

    title: str
    from_s: float
    to_s: float
    lanes: Sequence[tuple[str, Sequence[Bar]]]
    colours: Mapping[str, str]
    marks: Sequence[tuple[float, str]] = ()


def lanes_picture(told: LaneChart) -> str:
    """The lanes as SVG."""
    left = _EDGE * 2 + _LETTER * max((len(name) for name, _ in told.lanes), default=0)
    scale = (WIDTH - _EDGE - left) / max(told.to_s - told.from_s, 0.001)
    bottom = _TOP + ROW * len(told.lanes)
    height = bottom + 34 + 16 * len(told.marks)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(_EDGE, 20, told.title, ' font-size="14"'),
        *_legend(told.colours),
    ]
    for number, (name, bars) in enumerate(told.lanes):
        y = _TOP + ROW * number
        lines.append(_text(_EDGE, y + 12, name))
        for bar in bars:
            lines += _bar(bar, left + (bar.from_s - told.from_s) * scale, y, scale, told.colours)
    for number in range(TICKS + 1):
        at_s = (told.to_s - told.from_s) * number / TICKS
        anchor = ("start", "middle", "end")[(number > 0) + (number == TICKS)]
        text = f"+{lasting(at_s)}"
        lines.append(_text(left + at_s * scale, bottom + 16, text, f' text-anchor="{anchor}"'))
    for number, (at_s, text) in enumerate(told.marks):
        x = left + (at_s - told.from_s) * scale
        lines.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4}" y2="{bottom + 2}" stroke="#000000"'
            ' stroke-dasharray="3 2"/>'
        )
        after = lasting(at_s - told.from_s)
        lines.append(_text(left, bottom + 36 + 16 * number, cut(f"+{after}: {text}")))
    return "\n".join([*lines, "</svg>", ""])


def lasting(seconds: float) -> str:
    """A span of time in words."""
    return duration(round(seconds * _MS_PER_S))


def _legend(colours: Mapping[str, str]) -> Iterator[str]:
    x = float(_EDGE)
    for sort, colour in colours.items():
        yield f'<rect x="{x:.1f}" y="33" width="12" height="12" fill="{colour}"/>'
        yield _text(x + 16, 43, sort)
        x += 40 + _LETTER * len(sort)


def _bar(bar: Bar, x: float, y: int, scale: float, colours: Mapping[str, str]) -> Iterator[str]:
    width = (bar.to_s - bar.from_s) * scale
    yield (
        f"<g><title>{escape(cut(bar.words, _TITLE_LETTERS_MAX))}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{max(width, _BAR_MIN):.1f}" height="{_BAR}"'
        f' fill="{colours[bar.sort]}"/>'
    )
    letters = int((width - 6) / _LETTER)
    if bar.label and letters >= _LABEL_LETTERS_MIN:
        yield _text(x + 3, y + 12, cut(bar.label, letters))
    yield "</g>"


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}"{more}>{escape(text)}</text>'
