"""Tables and sentences for people: columns under headers, and on a terminal lines that fit it."""

import shutil
import textwrap
from collections.abc import Sequence
from typing import Final

from haptera.cli.output.printing import Coloured, Format, is_terminal, say
from haptera.model.text import shown

_GAP: Final = "  "
# Below this, a column of words is not worth its wrapping.
WORDS_WIDTH_MIN: Final = 24


def print_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    output: str,
    colours: Sequence[str | None] = (),
    *,
    none: str | None = None,
) -> None:
    """Write rows under headers, each in its colour, if it has one.

    Where there are no rows, nothing is written but what `none` says, on stderr. On a terminal the
    last column is wrapped between words, unless the output is to be wide.
    """
    if not rows:
        if none is not None:
            say(none, err=True)
        return
    table = [headers, *([_cell(one) for one in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    for number, row in enumerate(table, start=-1):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        first, *rest = _lines(row[-1], before, output)
        line = _GAP.join([*cells[:-1], first]).rstrip()
        if number >= 0 and colours and (colour := colours[number]) is not None:
            start = len(cells[0]) + len(_GAP)
            end = start + len(cells[1])
            say(line[:start], Coloured(line[start:end], colour), line[end:])
        else:
            say(line)
        for line in rest:
            say(" " * before + line)


def print_sentence(text: str, output: str, *, indent: str = "", colour: str | None = None) -> None:
    """Write a sentence behind an indent, wrapped between words as the last column of a table."""
    first, *rest = _lines(text, len(indent), output)
    say(indent + first, fg=colour)
    for line in rest:
        say(" " * (len(indent) or len(_GAP)) + line, fg=colour)


def _cell(text: str) -> str:
    """As it is seen, in one line: that is what its column's width goes by."""
    return shown(text).replace("\n", " ")


def _lines(text: str, before: int, output: str) -> list[str]:
    """The text in lines that fit behind so many characters; one line where nobody looks."""
    room = shutil.get_terminal_size().columns - before
    if not is_terminal() or Format(output) is Format.WIDE or len(text) <= room:
        return [text]
    width = max(room, WORDS_WIDTH_MIN)
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
