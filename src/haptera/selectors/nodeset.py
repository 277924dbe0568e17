"""Node-sets: many names written as one, `rack[1-4]n[01-40]`, and many names folded into one.

The syntax is ClusterShell's: patterns with brackets, `*` and `?`, groups (`@gpu`, `@rack:r1`), and
between them `,` for either, `!` for but not, `&` for both and `^` for only one, from left to right.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from itertools import chain, product
from math import prod
from typing import Final

from haptera.model.entity import check_name
from haptera.model.errors import HapteraError, LimitError
from haptera.selectors.names import (
    EVERY,
    Either,
    Globs,
    GroupName,
    Groups,
    InGroups,
    Member,
    NameBlock,
    Term,
    no_groups,
    split,
)
from haptera.selectors.numbers import Numbers, digits, fold_numbers, read_bracket
from haptera.selectors.text_cursor import Reader

NODES_MAX: Final = 200_000
NODESET_BYTES_MAX: Final = 65_536
# A set of up to so many names is kept name by name, which is quicker to look up.
SPELT_MAX: Final = 1_000
# How often `!`, `&` and `^` may follow on something else, for each is a step of its own.
STEPS_MAX: Final = 100
# How many groups a text may name, and how many `*` and `?` it may have, those beside a bracket
# counted once for each of its numbers: each is tried on each node.
GROUPS_MAX: Final = 256
WILD_MAX: Final = 256

# Followed by `=` it is none: `power!=on` asks for a state.
_OPERATOR: Final = re.compile(r"[,&^]|!(?!=)")
_TEXT: Final = re.compile(r"[A-Za-z0-9._-]+|[*?]")
_AT: Final = re.compile(r"@")
_CLOSE: Final = re.compile(r"\]")
_COLON: Final = re.compile(r":")
_DIGITS: Final = re.compile(r"([0-9]+)")

_DO_NAME: Final = "write NAME, NAME[1-4], NAME*, @GROUP or @SOURCE:GROUP"
_DO_GROUP: Final = "write @GROUP or @SOURCE:GROUP"
_DO_END: Final = "join node-sets by `,`, `!`, `&` or `^`"

_WILD: Final = (EVERY, "?")

_Pieces = list[str | Numbers]
# The numbers of each place of some names: all of them together.
_Numbers = tuple[frozenset[str], ...]


class SetOperator(StrEnum):
    """What becomes of the names to its left by those to its right."""

    UNION = ","
    DIFFERENCE = "!"
    INTERSECTION = "&"
    SYMMETRIC_DIFFERENCE = "^"


# Of these, several in a row are one step.
_GATHERED: Final = (SetOperator.UNION, SetOperator.DIFFERENCE)


class NodeSet:
    """What was read of a node-set; nothing of it is expanded before somebody asks for that."""

    def __init__(self, terms: Iterable[tuple[SetOperator, Term]]) -> None:
        steps: list[tuple[SetOperator, list[Term]]] = []
        for operator, term in terms:
            if operator in _GATHERED and steps and steps[-1][0] is operator:
                steps[-1][1].append(term)
            else:
                steps.append((operator, [term]))
        self.steps = [(operator, Either(some)) for operator, some in steps]
        self.terms = [term for _, some in self.steps for term in some.terms]
        # Whether it names each node itself, not by a pattern or a group.
        self.plain = all(isinstance(term, NameBlock) for term in self.terms)
        # How many names it spells out, some perhaps more than once.
        self.count_max = sum(len(term) for term in self.terms if isinstance(term, NameBlock))
        groups = [term.names for term in self.terms if isinstance(term, InGroups)]
        self.groups = tuple(chain.from_iterable(groups))

    @cached_property
    def _spelt(self) -> frozenset[str] | None:
        """All names, where there are few."""
        few = self.plain and self.count_max <= SPELT_MAX
        return frozenset(member.name for member in self.members()) if few else None

    def has(self, name: str, groups: Groups = no_groups) -> bool:
        """Whether this name is in it."""
        if self._spelt is not None:
            return name in self._spelt
        one = split(name)
        inside = False
        for operator, some in self.steps:
            match operator:
                case SetOperator.UNION:
                    inside = inside or some.has(one, groups)
                case SetOperator.DIFFERENCE:
                    inside = inside and not some.has(one, groups)
                case SetOperator.INTERSECTION:
                    inside = inside and some.has(one, groups)
                case SetOperator.SYMMETRIC_DIFFERENCE:
                    inside = inside != some.has(one, groups)
        return inside

    def members(self, groups: Groups = no_groups) -> tuple[Member, ...]:
        """All names with their dimensions, each name once, the first writing first."""
        return tuple(self.each(groups))

    def each(self, groups: Groups = no_groups) -> Iterator[Member]:
        """The same, one by one where that can be: none is made before it is asked for."""
        found: dict[str, Member] = {}
        if len(self.steps) == 1:
            for member in self.steps[0][1].members(groups):
                if found.setdefault(member.name, member) is member:
                    yield member
            return
        for operator, some in self.steps:
            match operator:
                case SetOperator.UNION:
                    for member in some.members(groups):
                        found.setdefault(member.name, member)
                case SetOperator.DIFFERENCE:
                    found = {n: m for n, m in found.items() if not some.has(split(n), groups)}
                case SetOperator.INTERSECTION:
                    found = {n: m for n, m in found.items() if some.has(split(n), groups)}
                case SetOperator.SYMMETRIC_DIFFERENCE:
                    other = {member.name: member for member in some.members(groups)}
                    both = found.keys() & other.keys()
                    found = {n: m for n, m in (found | other).items() if n not in both}
        yield from found.values()


def expand(text: str, groups: Groups = no_groups) -> tuple[str, ...]:
    """All names of a node-set, each once, in the order in which they are written.

    >>> expand("rack[1-2]n[09-10],login")
    ('rack1n09', 'rack1n10', 'rack2n09', 'rack2n10', 'login')
    >>> expand("n[1-9/2]!n[5-7]")
    ('n1', 'n3', 'n9')

    Raises:
        HapteraError: the text is no node-set, or names more than NODES_MAX nodes.
    """
    return tuple(member.name for member in members(text, groups))


def members(text: str, groups: Groups = no_groups) -> tuple[Member, ...]:
    """All names of a node-set with their dimensions, each name once, the first writing first.

    >>> members("rack[1-2]n01")[1]
    Member(name='rack2n01', dimensions=('2',))

    Raises:
        HapteraError: the text is no node-set, or names more than NODES_MAX nodes.
    """
    return parse_nodeset(text).members(groups)


def parse_nodeset(text: str) -> NodeSet:
    """Read a node-set.

    Raises:
        HapteraError: the text is none, is too long, or names more than NODES_MAX nodes.
    """
    if len(text.encode(errors="replace")) > NODESET_BYTES_MAX:
        raise LimitError(
            "the node-set is too long", do=f"use at most {NODESET_BYTES_MAX} bytes, in brackets"
        )
    reader = Reader(text, "node-set")
    found = read_nodeset(reader)
    reader.end(_DO_END)
    return found


def read_nodeset(reader: Reader) -> NodeSet:
    """Read a node-set as far as it goes, with the spaces around its terms.

    Raises:
        HapteraError: there is none, or it names more than NODES_MAX nodes.
    """
    terms: list[tuple[SetOperator, Term]] = []
    operator = SetOperator.UNION
    while True:
        at = reader.at
        term = _read_term(reader)
        terms.append((operator, term))
        reader.count("nodes", len(term) if isinstance(term, NameBlock) else 0, NODES_MAX, at)
        if (found := reader.take(_OPERATOR)) is None:
            break
        operator = SetOperator(found[0])
    nodes = NodeSet(terms)
    if len(nodes.steps) > STEPS_MAX:
        raise reader.error(f"more than {STEPS_MAX} set operators", "merge some of them")
    return nodes


def fold(names: Iterable[str]) -> str:
    """The names as one node-set, sorted and short; `expand` gives them back.

    >>> fold(["n10", "n9", "rack2n1", "rack1n1", "rack1n2", "rack2n2", "n08"])
    'n[9,08,10],rack[1-2]n[1-2]'
    """
    folder = NameFolder()
    for name in names:
        folder.add(name)
    return folder.text()


class NameFolder:
    """Names that are to be one node-set, added one by one: what is left for the end is short.

    They are kept by their texts and all of their numbers but the last one: most of the joining is
    done by that.
    """

    def __init__(self) -> None:
        self._alike: dict[tuple[str, ...], dict[tuple[str, ...], set[str]]] = {}

    def add(self, name: str) -> None:
        one = split(name)
        ends = self._alike.setdefault(one.texts, {})
        ends.setdefault(one.numbers[:-1], set()).update(one.numbers[-1:])

    def text(self) -> str:
        """All of them, each once, sorted and short."""
        return ",".join(
            _written(texts, block)
            for texts in sorted(self._alike, key="%s".join)
            for block in sorted(_blocks(self._alike[texts]), key=_largest_first)
        )


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts `n9` before `n10`."""
    pieces = _DIGITS.split(text)
    return [(int(piece) if index % 2 else 0, piece) for index, piece in enumerate(pieces)]


def _read_term(reader: Reader) -> Term:
    reader.skip_spaces()
    term = _read_groups(reader) if reader.take(_AT) is not None else _read_names(reader)
    reader.skip_spaces()
    return term


def _read_names(reader: Reader) -> Term:
    begin = reader.at
    pieces = _read_pieces(reader)
    if not pieces:
        raise reader.error("a name is missing", _DO_NAME)
    wild = sum(piece in _WILD for piece in pieces if isinstance(piece, str))
    if not wild:
        return _block(reader, begin, pieces)
    reader.count("* and ?, with the brackets spelt out", wild * _count(pieces), WILD_MAX, begin)
    return Globs(tuple(_spelt(pieces)))


def _read_groups(reader: Reader) -> InGroups:
    """What stands behind the `@`."""
    begin = reader.at
    source, pieces = None, _read_pieces(reader)
    if reader.take(_COLON) is not None:
        if [type(piece) for piece in pieces] != [str]:
            raise reader.error("a source of groups is one name", _DO_GROUP, begin)
        source, pieces = str(pieces[0]), _read_pieces(reader)
    if not pieces:
        raise reader.error("the name of a group is missing", _DO_GROUP)
    if len(pieces) > 1 and any(piece in _WILD for piece in pieces if isinstance(piece, str)):
        raise reader.error("a * in the name of a group", "write * alone, or the name", begin)
    reader.count("groups", _count(pieces), GROUPS_MAX, begin)
    return InGroups(tuple(GroupName(source, name) for name in _spelt(pieces)))


def _read_pieces(reader: Reader) -> _Pieces:
    """Texts and brackets, as far as they go; each `*` and `?` is a text of its own."""
    pieces: _Pieces = []
    while True:
        at = reader.at
        if (found := reader.take(_TEXT)) is not None:
            pieces.append(found[0])
        elif (numbers := read_bracket(reader, NODES_MAX)) is not None:
            if pieces and isinstance(pieces[-1], Numbers):
                raise _side_by_side(reader, at)
            pieces.append(numbers)
        elif reader.take(_CLOSE) is not None:
            raise reader.error("a bracket without its counterpart", "pair them", at)
        else:
            return pieces


def _block(reader: Reader, begin: int, pieces: _Pieces) -> NameBlock:
    """The names of these pieces; digits beside a bracket belong to its numbers."""
    texts, numbers, brackets = [""], list[Numbers](), list[int]()
    for piece in _apart(pieces):
        beside = numbers[-1] if numbers and not texts[-1] else None
        if isinstance(piece, str) and not piece[0].isdigit():
            texts[-1] += piece
        elif isinstance(piece, str) and beside is not None:
            numbers[-1] = replace(beside, after=piece)
        elif isinstance(piece, str):
            numbers.append(digits(piece))
            texts.append("")
        else:
            if beside is None:
                texts.append("")
                numbers.append(piece)
            elif len(numbers) - 1 in brackets:
                raise _side_by_side(reader, begin)
            else:
                numbers[-1] = replace(piece, before=beside.longest)
            brackets.append(len(numbers) - 1)
    block = NameBlock(tuple(texts), tuple(numbers), tuple(brackets))
    if len(block) > NODES_MAX:
        raise reader.error(f"more than {NODES_MAX} nodes", "ask for fewer at once", begin)
    try:
        check_name(block.name(one.longest for one in block.numbers))
    except HapteraError as error:
        raise reader.error(error.what, error.do or "", begin) from None
    return block


def _apart(pieces: _Pieces) -> Iterator[str | Numbers]:
    """The pieces, texts taken apart into digits and the rest."""
    for piece in pieces:
        if isinstance(piece, str):
            yield from filter(None, _DIGITS.split(piece))
        else:
            yield piece


def _spelt(pieces: _Pieces) -> Iterator[str]:
    """All texts that the pieces stand for."""
    choices = [[piece] if isinstance(piece, str) else list(piece) for piece in pieces]
    return map("".join, product(*choices))


def _count(pieces: _Pieces) -> int:
    return prod(len(piece) for piece in pieces if isinstance(piece, Numbers))


def _side_by_side(reader: Reader, at: int) -> HapteraError:
    return reader.error("two brackets with no letter between", "write them as one", at)


def _blocks(ends: dict[tuple[str, ...], set[str]]) -> set[_Numbers]:
    """Join blocks that differ in one dimension only, until none do; they never overlap."""
    blocks = {
        tuple(frozenset(one) for one in (*((text,) for text in head), texts) if one)
        for head, texts in ends.items()
    }
    dimensions = range(len(next(iter(blocks))))
    before = -1
    while len(blocks) != before:
        before = len(blocks)
        for dimension in reversed(dimensions):
            blocks = _joined(blocks, dimension)
    return blocks


def _joined(blocks: set[_Numbers], dimension: int) -> set[_Numbers]:
    alike: dict[tuple[_Numbers, _Numbers], list[frozenset[str]]] = {}
    for block in blocks:
        others = (block[:dimension], block[dimension + 1 :])
        alike.setdefault(others, []).append(block[dimension])
    return {(*head, _united(some), *tail) for (head, tail), some in alike.items()}


def _united(some: list[frozenset[str]]) -> frozenset[str]:
    """Most are alone, and may be large: these are not copied."""
    return some[0] if len(some) == 1 else frozenset().union(*some)


def _largest_first(block: _Numbers) -> tuple[int, list[tuple[int, str, str]]]:
    sizes = [(-len(texts), *_ends(texts)) for texts in block]
    return -prod(map(len, block)), sizes


def _ends(texts: frozenset[str]) -> tuple[str, str]:
    ordered = sorted(texts, key=lambda text: (len(text), text))
    return ordered[0], ordered[-1]


def _written(texts: tuple[str, ...], block: _Numbers) -> str:
    numbers = [fold_numbers(one) if len(one) == 1 else f"[{fold_numbers(one)}]" for one in block]
    return "".join(f"{text}{one}" for text, one in zip(texts, (*numbers, ""), strict=True))
