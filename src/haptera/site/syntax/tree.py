"""A site file as a tree of texts that know their place; nothing in it is taken for a yes or no."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from haptera.model.errors import Code, HapteraError, InputError, ParseError

DEPTH_MAX: Final = 16
ERRORS_MAX: Final = 100

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FRACTION = re.compile(r"-?[0-9]{1,17}\.[0-9]{1,17}")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands, as people count: from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One scalar, as written; `quoted` texts are texts whatever they look like."""

    text: str
    quoted: bool
    place: Place

    @property
    def empty(self) -> bool:
        return not self.quoted and self.text in ("", "~", "null")


@dataclass(frozen=True, slots=True)
class Branch:
    """A mapping, in the order in which it is written; each key is there once."""

    entries: tuple[tuple[Leaf, "Tree"], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Series:
    items: tuple["Tree", ...]
    place: Place


Tree = Leaf | Branch | Series


class Errors:
    """What is wrong with a site: the first error of each place, ERRORS_MAX in all."""

    def __init__(self) -> None:
        self._found: dict[Place, HapteraError] = {}

    def add(self, error: HapteraError, place: Place) -> None:
        """Remember an error at this place.

        Raises:
            InputError: there are too many to go on.
        """
        placed = HapteraError(error.what, where=str(place), do=error.do, code=error.code)
        self._found.setdefault(place, placed)
        if len(self._found) == ERRORS_MAX:
            self.check()

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        """What goes wrong in here is wrong at this place; it is remembered, and life goes on."""
        try:
            yield
        except InputError:
            raise
        except HapteraError as error:
            what = error.what if error.where is None else f"{error.where}: {error.what}"
            self.add(HapteraError(what, do=error.do, code=error.code), place)

    def check(self) -> None:
        """Raise all errors, as one, in the order of their places.

        Raises:
            InputError: there are some.
        """
        if self._found:
            raise InputError([error for _, error in self])

    def __iter__(self) -> Iterator[tuple[Place, HapteraError]]:
        return iter(sorted(self._found.items(), key=lambda one: one[0]))


def entries_of(tree: Tree, errors: Errors) -> tuple[tuple[Leaf, Tree], ...]:
    """What is in a mapping; nothing written is an empty one."""
    if isinstance(tree, Branch):
        return tree.entries
    if not (isinstance(tree, Leaf) and tree.empty):
        errors.add(
            ParseError("a mapping is expected here", do="write `NAME: VALUE` below"), tree.place
        )
    return ()


def leaf(tree: Tree) -> Leaf:
    """The one value that is expected here.

    Raises:
        HapteraError: there is none, or more.
    """
    if not isinstance(tree, Leaf):
        raise ParseError("a value is expected here, not a list or mapping", do="write one value")
    if tree.empty:
        raise HapteraError(
            "there is no value", do='write one, or "" for an empty text', code=Code.MISSING
        )
    return tree


def leaves(tree: Tree) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Each scalar with the keys that lead to it; those in a list have the list's."""
    match tree:
        case Leaf():
            yield (), tree
        case Series(items):
            for item in items:
                yield from leaves(item)
        case Branch(entries):
            for key, inner in entries:
                yield from (((key.text, *path), one) for path, one in leaves(inner))


def plain_data(tree: Tree) -> object:
    """The tree as numbers, texts, lists and dicts; `on` and `off` stay texts."""
    match tree:
        case Branch(entries):
            return {key.text: plain_data(value) for key, value in entries}
        case Series(items):
            return [plain_data(item) for item in items]
        case Leaf(text, quoted):
            return text if quoted else _value(text)


def _value(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text
