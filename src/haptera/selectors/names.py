"""What one term of a node-set names: a block of names, a pattern with `*` or `?`, or groups."""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice, product
from math import prod
from typing import Final

from haptera.model.errors import ParseError
from haptera.selectors.numbers import Numbers

# The name of the group of all nodes, and of all that a source has.
EVERY: Final = "*"

SPLIT_CACHED_MAX: Final = 16_384
COMPARED_MAX: Final = 256
_NUMBER: Final = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class GroupName:
    """Nodes under one name: of a source (`@rack:r1`), or None for those that are just named."""

    source: str | None
    name: str

    def __str__(self) -> str:
        return f"@{self.name}" if self.source is None else f"@{self.source}:{self.name}"


# The nodes of a group; of one that nobody knows, none.
Groups = Callable[[GroupName], Collection[str]]

ALL_NODES: Final = GroupName(None, EVERY)


def no_groups(group: GroupName) -> Collection[str]:
    """Where only names count, for it is not known which nodes there are.

    Raises:
        HapteraError: always.
    """
    what = "a pattern" if group == ALL_NODES else f"the group {group}"
    raise ParseError(
        f"{what} cannot be used here",
        where="the node-set",
        do="name the nodes: rack[1-4]n[01-40]",
    )


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The name that was meant, perhaps: it has the same numbers, for these say which one it is.

    >>> nearest_name("rakc1n2", ["rack1n01", "rack1n02"])
    'rack1n02'
    >>> nearest_name("rack1n9", ["rack1n01", "rack1n02"])
    """
    numbers = _numbers(name)
    alike = islice((one for one in names if _numbers(one) == numbers), COMPARED_MAX)
    return next(iter(get_close_matches(name, list(alike), n=1)), None)


def _numbers(name: str) -> list[str]:
    return [digits.lstrip("0") for digits in _NUMBER.findall(name)]


@dataclass(frozen=True, slots=True)
class Member:
    """One name of a node-set, with what stands for each bracket of its pattern, as text."""

    name: str
    dimensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """A name, and the same as texts with numbers between them: the shape that folding goes by.

    >>> split("rack1n01")
    Split(name='rack1n01', texts=('rack', 'n', ''), numbers=('1', '01'))
    """

    name: str
    texts: tuple[str, ...]
    numbers: tuple[str, ...]


@lru_cache(SPLIT_CACHED_MAX)
def split(name: str) -> Split:
    pieces = _NUMBER.split(name)
    return Split(name, tuple(pieces[::2]), tuple(pieces[1::2]))


@dataclass(frozen=True, slots=True)
class NameBlock:
    """All names of one shape, with these numbers; `brackets` are the places of the written ones."""

    texts: tuple[str, ...]
    numbers: tuple[Numbers, ...]
    brackets: tuple[int, ...]

    def __len__(self) -> int:
        # Python has no longer ones: as many as nobody may name, however many brackets there are.
        return min(prod(map(len, self.numbers)), sys.maxsize)

    def holds(self, numbers: Iterable[str]) -> bool:
        """Whether the name of this shape with these numbers is one of them."""
        return all(one in some for one, some in zip(numbers, self.numbers, strict=True))

    def members(self, _groups: Groups) -> Iterator[Member]:
        for chosen in product(*map(list, self.numbers)):
            dimensions = tuple(self.numbers[at].inside(chosen[at]) for at in self.brackets)
            yield Member(self.name(chosen), dimensions)

    def name(self, numbers: Iterable[str]) -> str:
        """The name with these numbers."""
        return "".join(f"{text}{one}" for text, one in zip(self.texts, (*numbers, ""), strict=True))


@dataclass(frozen=True, slots=True)
class Globs:
    """The nodes that any of these patterns fits: `*` stands for any characters, `?` for one."""

    patterns: tuple[str, ...]
    _fits: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fits = re.compile("|".join(map(_expression, self.patterns)))
        object.__setattr__(self, "_fits", fits)

    def has(self, name: str, _groups: Groups) -> bool:
        return self._fits.fullmatch(name) is not None

    def members(self, groups: Groups) -> Iterator[Member]:
        return (Member(one, ()) for one in groups(ALL_NODES) if self.has(one, groups))


@dataclass(frozen=True, slots=True)
class InGroups:
    """The nodes of any of these groups."""

    names: tuple[GroupName, ...]

    def has(self, name: str, groups: Groups) -> bool:
        return any(name in groups(one) for one in self.names)

    def members(self, groups: Groups) -> Iterator[Member]:
        return (Member(one, ()) for group in self.names for one in groups(group))


Term = NameBlock | Globs | InGroups


class Either:
    """The names of any of some terms; blocks are found by their shape."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self.terms = tuple(terms)
        self._blocks: dict[tuple[str, ...], list[NameBlock]] = {}
        for term in self.terms:
            if isinstance(term, NameBlock):
                self._blocks.setdefault(term.texts, []).append(term)
        self._others = [one for one in self.terms if not isinstance(one, NameBlock)]

    def has(self, name: Split, groups: Groups) -> bool:
        alike = self._blocks.get(name.texts, ())
        return any(block.holds(name.numbers) for block in alike) or any(
            term.has(name.name, groups) for term in self._others
        )

    def members(self, groups: Groups) -> Iterator[Member]:
        return (member for term in self.terms for member in term.members(groups))


def _expression(pattern: str) -> str:
    """The regular expression of a pattern.

    What stands between two `*` is sought once, where it comes first: a name of 64 letters and a
    pattern of many `*` would otherwise take years.
    """
    first, *between = map(_literal, pattern.split("*"))
    if not between:
        return first
    *between, last = between
    sought = "".join(f"(?>.*?{piece})" for piece in between if piece)
    return f"{first}{sought}.*{last}"


def _literal(text: str) -> str:
    return ".".join(map(re.escape, text.split("?")))
