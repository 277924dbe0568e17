"""The numbers that a bracket of a node-set stands for, as text: ranges, steps, zeros in front."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from haptera.model.errors import LimitError
from haptera.selectors.text_cursor import Reader

# A range of up to so many numbers is kept number by number, which is quicker to look up.
SPELT_MAX: Final = 64
RANGE_BYTES_MAX: Final = 256

_OPEN: Final = re.compile(r"\[")
_CLOSE: Final = re.compile(r"\s*\]")
_COMMA: Final = re.compile(r"\s*,")
_RANGE: Final = re.compile(
    r"\s*(?P<first>[0-9]+)(?:\s*-\s*(?P<last>[0-9]+))?(?:\s*/\s*(?P<step>[0-9]+))?"
)
_PART: Final = re.compile(r"[^\[\],]*")

_Ranges = tuple[tuple[range, int], ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Ranges, each with its width (0: no zeros in front), and the digits right beside the bracket.

    >>> one = Numbers(((range(8, 11), 2),), before="1")
    >>> list(one), "109" in one, "19" in one
    (['108', '109', '110'], True, False)
    """

    ranges: _Ranges
    before: str = ""
    after: str = ""
    _spelt: frozenset[str] = field(init=False, repr=False, compare=False)
    _long: _Ranges = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        short = [one for one in self.ranges if len(one[0]) <= SPELT_MAX]
        object.__setattr__(self, "_spelt", frozenset(_texts(short)))
        long = [one for one in self.ranges if len(one[0]) > SPELT_MAX]
        object.__setattr__(self, "_long", tuple(long))

    def __len__(self) -> int:
        return sum(len(numbers) for numbers, _ in self.ranges)

    def __iter__(self) -> Iterator[str]:
        return (f"{self.before}{text}{self.after}" for text in _texts(self.ranges))

    def __contains__(self, text: str) -> bool:
        beside = len(self.before) + len(self.after)
        if len(text) <= beside or not (text.startswith(self.before) and text.endswith(self.after)):
            return False
        inner = self.inside(text)
        if inner in self._spelt:
            return True
        return bool(self._long) and any(
            int(inner) in numbers and inner == f"{int(inner):0{width}}"
            for numbers, width in self._long
        )

    def inside(self, text: str) -> str:
        """Of one of these, what stands for the bracket itself."""
        return text[len(self.before) : len(text) - len(self.after)]

    @property
    def longest(self) -> str:
        """The one of the most digits."""
        last = max((f"{numbers[-1]:0{width}}" for numbers, width in self.ranges), key=len)
        return f"{self.before}{last}{self.after}"


def digits(text: str) -> Numbers:
    """The one number that is written so.

    Raises:
        HapteraError: it is longer than any name; of thousands of digits `int` reads none.
    """
    if len(text) > RANGE_BYTES_MAX:
        raise LimitError(
            f"a number of {len(text)} digits", do=f"use at most {RANGE_BYTES_MAX} in a name"
        )
    return Numbers(((range(int(text), int(text) + 1), len(text)),))


def read_bracket(reader: Reader, count_max: int) -> Numbers | None:
    """What a bracket stands for; None where none begins here.

    Raises:
        HapteraError: it is not closed, holds no numbers, or more than `count_max`.
    """
    begin = reader.at
    if reader.take(_OPEN) is None:
        return None
    ranges = [_read_range(reader, count_max)]
    while reader.take(_COMMA) is not None:
        ranges.append(_read_range(reader, count_max))
    if reader.take(_CLOSE) is None:
        if "]" in reader.text[reader.at :]:
            raise reader.error("this is not a range of numbers", "write [1-4], [1,3] or [1-9/2]")
        raise reader.error("a bracket that is not closed", "write a ]", at=begin)
    found = Numbers(tuple(ranges))
    if len(found) > count_max:
        raise _too_many(reader, begin, count_max)
    return found


def fold_numbers(texts: Iterable[str]) -> str:
    """The numbers as they are written in a bracket, `read_bracket` gives them back.

    >>> fold_numbers(["10", "9", "8", "09", "011", "1"])
    '1,8-9,09-10,011'
    """
    runs: list[tuple[str, str]] = []
    for text in sorted(texts, key=lambda text: (len(text), text)):
        if runs and _goes_on(*runs[-1], text):
            runs[-1] = runs[-1][0], text
        else:
            runs.append((text, text))
    return ",".join(first if first == last else f"{first}-{last}" for first, last in runs)


def _texts(ranges: Iterable[tuple[range, int]]) -> Iterator[str]:
    return (f"{number:0{width}}" for numbers, width in ranges for number in numbers)


def _goes_on(first: str, last: str, text: str) -> bool:
    """Whether this is the next number of a range; where zeros stand in front, it never widens."""
    fits = len(text) == len(first) if _padded(first) else not _padded(text)
    return fits and int(text) == int(last) + 1


def _padded(text: str) -> bool:
    return len(text) > 1 and text.startswith("0")


def _read_range(reader: Reader, count_max: int) -> tuple[range, int]:
    at = reader.at
    found = reader.take(_RANGE)
    if found is None:
        part = reader.take(_PART)
        what = f"{'' if part is None else part[0].strip()!r} is not a range of numbers"
        raise reader.error(what, "write [1-4], [1,3] or [1-9/2]", at)
    if len(found[0]) > RANGE_BYTES_MAX:
        raise reader.error(f"a range longer than {RANGE_BYTES_MAX} characters", "write less", at)
    first, last, step = found["first"], found["last"] or found["first"], found["step"] or "1"
    if int(step) == 0 or (found["last"] is None and int(step) != 1):
        raise reader.error(
            f"{found[0].strip()!r} has a step that cannot be used", "write [1-9/2]", at
        )
    if len(first) != len(last) and (_padded(first) or _padded(last)):
        what = f"{first}-{last} differ in width"
        raise reader.error(what, "pad both with zeros, or none", at)
    numbers = range(int(first), int(last) + 1, int(step))
    if not numbers:
        raise reader.error(f"{first}-{last} goes down", "write the smaller number first", at)
    # Not len(): that overflows long before a text of digits ends.
    if (numbers.stop - numbers.start) // numbers.step > count_max:
        raise _too_many(reader, at, count_max)
    return numbers, len(first) if _padded(first) else 0


def _too_many(reader: Reader, at: int, count_max: int) -> Exception:
    return reader.error(f"more than {count_max} nodes", "ask for fewer at once", at)
