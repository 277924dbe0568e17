"""The course of a roll as a picture: a line for each system, its phases as bars along the time."""

from collections.abc import Iterator
from html import escape
from typing import Final

from haptera.cli.output.drawing.words import cut
from haptera.controllers.roll.timeline import RollLane, RollPhase, RollSpan, RollTimeline
from haptera.model.walltime import duration, utc_text_s

# In pixels, but for what says otherwise.
WIDTH: Final = 960
ROW: Final = 22
TICKS: Final = 6
_BAR: Final = 16
_EDGE: Final = 12
# Of a letter, on average; a name column is as wide as its longest name.
_LETTER: Final = 6.2
# What takes no time to speak of is seen nevertheless.
_BAR_MIN: Final = 1.5
_MS_PER_S: Final = 1_000

# Of Okabe and Ito's palette, which people see apart whatever colours they see.
_COLOURS: Final = {
    RollPhase.STAGING: "#56b4e9",
    RollPhase.READY: "#d9e4ec",
    RollPhase.WAITING: "#f0e442",
    RollPhase.CHANGING: "#e69f00",
    RollPhase.NEW: "#009e73",
    RollPhase.REFUSED: "#d55e00",
    RollPhase.BACK: "#cc79a7",
    RollPhase.SILENT: "#bbbbbb",
}


def roll_picture(told: RollTimeline) -> str:
    """A roll as SVG."""
    left = _EDGE * 2 + _LETTER * max((len(one.entity) for one in told.lanes), default=0)
    scale = (WIDTH - _EDGE - left) / max(told.to_s - told.from_s, 0.001)
    top = 62
    bottom = top + ROW * len(told.lanes)
    height = bottom + 34 + 16 * len(told.marks)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(_EDGE, 20, _title(told), ' font-size="14"'),
        *_legend(),
    ]
    for number, lane in enumerate(told.lanes):
        lines += _row(lane, told.from_s, left, scale, top + ROW * number)
    for number in range(TICKS + 1):
        at_s = (told.to_s - told.from_s) * number / TICKS
        anchor = ("start", "middle", "end")[(number > 0) + (number == TICKS)]
        text = f"+{duration(round(at_s * _MS_PER_S))}"
        lines.append(_text(left + at_s * scale, bottom + 16, text, f' text-anchor="{anchor}"'))
    for number, mark in enumerate(told.marks):
        x = left + (mark.at_s - told.from_s) * scale
        lines.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{bottom + 2}" stroke="#000000"'
            ' stroke-dasharray="3 2"/>'
        )
        after = duration(round((mark.at_s - told.from_s) * _MS_PER_S))
        lines.append(_text(left, bottom + 36 + 16 * number, cut(f"+{after}: {mark.text}")))
    return "\n".join([*lines, "</svg>", ""])


def _title(told: RollTimeline) -> str:
    lasts = duration(round((told.to_s - told.from_s) * _MS_PER_S))
    return f"roll {told.name} to {told.image}: {utc_text_s(int(told.from_s))}, {lasts}"


def _legend() -> Iterator[str]:
    x = float(_EDGE)
    for phase, colour in _COLOURS.items():
        yield f'<rect x="{x:.1f}" y="33" width="12" height="12" fill="{colour}"/>'
        yield _text(x + 16, 43, phase)
        x += 40 + _LETTER * len(phase)


def _row(lane: RollLane, from_s: float, left: float, scale: float, y: int) -> Iterator[str]:
    yield _text(_EDGE, y + 12, lane.entity)
    for span in lane.spans:
        x, width = left + (span.from_s - from_s) * scale, (span.to_s - span.from_s) * scale
        yield (
            f'<g><title>{escape(_words(span))}</title><rect x="{x:.1f}" y="{y}"'
            f' width="{max(width, _BAR_MIN):.1f}" height="{_BAR}" fill="{_COLOURS[span.phase]}"/>'
        )
        letters = int((width - 6) / _LETTER)
        if span.why is not None and span.phase in _SAYS_WHY and letters >= _WHY_LETTERS_MIN:
            yield _text(x + 3, y + 12, cut(span.why, letters))
        yield "</g>"


# Where a reason is of interest, if there is room for so much of it.
_SAYS_WHY: Final = (RollPhase.WAITING, RollPhase.REFUSED)
_WHY_LETTERS_MIN: Final = 12


def _words(span: RollSpan) -> str:
    lasts = duration(round((span.to_s - span.from_s) * _MS_PER_S))
    return cut(f"{span.phase} for {lasts}" + ("" if span.why is None else f": {span.why}"), 400)


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}"{more}>{escape(text)}</text>'
