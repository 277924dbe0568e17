"""Node-sets: many names written as one, `rack[1-4]n[01-40]`, and many names folded into one.

A node-set is a list of patterns with commas between them. A pattern is a name in which each
bracket stands for numbers: ranges and single numbers, again with commas between them. Zeros in
front are kept, so `[01-03]` is 01, 02, 03.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from haptera.model.entity import check_name
from haptera.model.errors import HapteraError

NODES_MAX = 200_000
NODESET_BYTES_MAX = 65_536

_PIECE = re.compile(
    r"\[(?P<bracket>[^\[\],]*(?:,[^\[\],]*)*)\]|(?P<text>[^\[\],]+)|(?P<wrong>[\[\]])"
)
_RANGE = re.compile(r"(?P<first>[0-9]+)(?:-(?P<last>[0-9]+))?")
_NUMBER = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class Member:
    """One name of a node-set, with what stands for each bracket of its pattern, as text."""

    name: str
    dimensions: tuple[str, ...]


def expand(text: str) -> tuple[str, ...]:
    """All names of a node-set, each once, in the order in which they are written.

    >>> expand("rack[1-2]n[09-10],login")
    ('rack1n09', 'rack1n10', 'rack2n09', 'rack2n10', 'login')

    Raises:
        HapteraError: the text is no node-set, or names more than NODES_MAX nodes.
    """
    return tuple(member.name for member in members(text))


def members(text: str) -> tuple[Member, ...]:
    """All names of a node-set with their dimensions, each name once, the first writing first.

    >>> members("rack[1-2]n01")[1]
    Member(name='rack2n01', dimensions=('2',))

    Raises:
        HapteraError: the text is no node-set, or names more than NODES_MAX nodes.
    """
    if len(text.encode(errors="replace")) > NODESET_BYTES_MAX:
        raise HapteraError(
            "the node-set is too long", do=f"use at most {NODESET_BYTES_MAX} bytes, in brackets"
        )
    found: dict[str, Member] = {}
    count = 0
    for at, pattern in _patterns(text):
        pieces = _pieces(text, at, pattern)
        count += prod(len(piece) for piece in pieces if isinstance(piece, _Numbers))
        if count > NODES_MAX:
            raise _error(text, at, f"more than {NODES_MAX} nodes", "ask for fewer at once")
        for member in _names(text, at, pieces):
            found.setdefault(member.name, member)
    return tuple(found.values())


def fold(names: Iterable[str]) -> str:
    """The names as one node-set, sorted and short; `expand` gives them back.

    >>> fold(["n10", "n9", "rack2n1", "rack1n1", "rack1n2", "rack2n2", "n08"])
    'n[08,9-10],rack[1-2]n[1-2]'
    """
    alike: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for name in sorted(set(names)):
        pieces = _NUMBER.split(name)
        alike.setdefault(tuple(pieces[::2]), []).append(tuple(pieces[1::2]))
    folded = [_written(texts, block) for texts, rows in alike.items() for block in _blocks(rows)]
    return ",".join(sorted(folded, key=natural))


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts `n9` before `n10`."""
    pieces = _NUMBER.split(text)
    return [(int(piece) if index % 2 else 0, piece) for index, piece in enumerate(pieces)]


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What one bracket stands for: numbers from first to last, in ranges, and their widths."""

    ranges: tuple[tuple[range, int], ...]

    def __len__(self) -> int:
        return sum(len(numbers) for numbers, _ in self.ranges)

    def __iter__(self) -> Iterator[str]:
        return (f"{number:0{width}}" for numbers, width in self.ranges for number in numbers)


def _patterns(text: str) -> Iterator[tuple[int, str]]:
    """The patterns of a node-set and where each begins: split at commas outside of brackets."""
    begin = depth = 0
    for at, character in enumerate(f"{text},"):
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            yield begin, text[begin:at]
            begin = at + 1
    if begin <= len(text):
        raise _error(text, text.rfind("["), "a bracket that is not closed", "write a ]")


def _pieces(text: str, at: int, pattern: str) -> list[str | _Numbers]:
    if not pattern.strip():
        raise _error(text, at, "a name is missing", "write one between the commas")
    pieces: list[str | _Numbers] = []
    for found in _PIECE.finditer(pattern):
        if found["wrong"] is not None:
            raise _error(text, at + found.start(), "a bracket without its other", "pair them")
        if found["text"] is not None:
            pieces.append(found["text"])
        else:
            pieces.append(_numbers(text, at + found.start() + 1, found["bracket"]))
    return pieces


def _numbers(text: str, at: int, bracket: str) -> _Numbers:
    ranges = []
    for part in bracket.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise _error(text, at, f"{part!r} is no range of numbers", "write [1-4] or [1,3]")
        ranges.append(_range(text, at, found["first"], found["last"] or found["first"]))
        at += len(part) + 1
    return _Numbers(tuple(ranges))


def _range(text: str, at: int, first: str, last: str) -> tuple[range, int]:
    padded = len(first) > 1 and first.startswith("0")
    if len(first) != len(last) and (padded or (len(last) > 1 and last.startswith("0"))):
        raise _error(text, at, f"{first}-{last} differ in width", "pad both with zeros, or none")
    numbers = range(int(first), int(last) + 1)
    if not numbers:
        raise _error(text, at, f"{first}-{last} goes down", "write the smaller number first")
    # Not len(): that overflows long before a text of digits ends.
    if numbers.stop - numbers.start > NODES_MAX:
        raise _error(text, at, f"more than {NODES_MAX} nodes", "ask for fewer at once")
    return numbers, len(first) if padded else 0


def _names(text: str, at: int, pieces: list[str | _Numbers]) -> Iterator[Member]:
    places = [index for index, piece in enumerate(pieces) if isinstance(piece, _Numbers)]
    choices = [[piece] if isinstance(piece, str) else list(piece) for piece in pieces]
    for chosen in product(*choices):
        try:
            name = check_name("".join(chosen))
        except HapteraError as error:
            raise _error(text, at, error.what, error.do or "") from None
        yield Member(name, tuple(chosen[index] for index in places))


_Block = tuple[frozenset[str], ...]


def _blocks(rows: list[tuple[str, ...]]) -> set[_Block]:
    """Join blocks that differ in one dimension only, until none do; they never overlap."""
    blocks: set[_Block] = {tuple(frozenset((text,)) for text in row) for row in rows}
    dimensions = range(len(rows[0]))
    before = -1
    while len(blocks) != before:
        before = len(blocks)
        for dimension in reversed(dimensions):
            blocks = _joined(blocks, dimension)
    return blocks


def _joined(blocks: set[_Block], dimension: int) -> set[_Block]:
    alike: dict[tuple[_Block, _Block], set[str]] = {}
    for block in blocks:
        others = (block[:dimension], block[dimension + 1 :])
        alike.setdefault(others, set()).update(block[dimension])
    return {(*head, frozenset(texts), *tail) for (head, tail), texts in alike.items()}


def _written(texts: tuple[str, ...], block: _Block) -> str:
    numbers = [_bracket(dimension) for dimension in block]
    return texts[0] + "".join(
        number + text for number, text in zip(numbers, texts[1:], strict=True)
    )


def _bracket(texts: frozenset[str]) -> str:
    if len(texts) == 1:
        return next(iter(texts))
    runs: list[list[str]] = []
    open_runs: dict[str, list[str]] = {}  # by the text that goes on with the run
    for text in sorted(texts, key=lambda text: (len(text), text)):
        if (run := open_runs.pop(text, None)) is None:
            runs.append(run := [])
        run.append(text)
        open_runs.setdefault(_next(run[0], text), run)
    written = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"[{','.join(sorted(written, key=natural))}]"


def _next(first: str, last: str) -> str:
    """What follows `last` in a range from `first`; a padded range never widens: then nothing."""
    text = f"{int(last) + 1:0{len(last)}}"
    padded = first != "0" and first.startswith("0")
    return "" if padded and len(text) > len(last) else text


def _error(text: str, at: int, what: str, do: str) -> HapteraError:
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return HapteraError(what, where=f"node-set {shown!r}, character {at + 1}", do=do)
