"""JSON as a tree: what another tool wrote, each piece with its place, no key lost unseen."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from haptera.model.errors import DuplicateError, HapteraError, ParseError
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series, Tree

# Facts that a tool gathered may lie deeper than a site file ever does.
JSON_DEPTH_MAX: Final = 64

_BLANK: Final = re.compile(r"[ \t\r\n]*+")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+"')
# NaN and Infinity are no JSON, but some tools write them.
_SCALAR: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|NaN|-?Infinity"
)
_HALF: Final = re.compile("[\ud800-\udfff]")


def read_json(text: str, file: str, errors: Errors, do: str) -> Tree:
    """The tree of one JSON text; of a key that is there twice the first counts, and it is told.

    `do` says how to have the JSON that is due, for who named a file that is none.

    Raises:
        HapteraError: the text is no JSON, or too deep.
    """
    return _Reader(text, file, errors, do).document()


class _Reader:
    """Reads from `_at` on, forwards only."""

    def __init__(self, text: str, file: str, errors: Errors, do: str) -> None:
        self._text = text
        self._file = file
        self._errors = errors
        self._do = f"mend the JSON, or {do}"
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._at = 0
        self._depth = 0

    def document(self) -> Tree:
        tree = self._value()
        if self._next():
            raise self._wrong("the text goes on behind its end")
        return tree

    def _value(self) -> Tree:
        match self._next():
            case "{" | "[" as opening:
                place = self._place()
                self._depth += 1
                if self._depth > JSON_DEPTH_MAX:
                    raise self._wrong(f"deeper than {JSON_DEPTH_MAX} levels")
                if opening == "{":
                    tree: Tree = Branch(tuple(self._entries()), place)
                else:
                    tree = Series(tuple(self._value() for _ in self._until("]")), place)
                self._depth -= 1
                return tree
            case '"':
                return self._string()
            case _:
                place = self._place()
                return Leaf(self._take(_SCALAR, "a value is due here"), quoted=False, place=place)

    def _entries(self) -> Iterator[tuple[Leaf, Tree]]:
        seen: dict[str, Place] = {}
        for _ in self._until("}"):
            key = self._string()
            if self._next() != ":":
                raise self._wrong("a colon is due here")
            self._at += 1
            value = self._value()
            if key.text in seen:
                what = f"the key {key.text} is there already, at {seen[key.text]}"
                self._errors.add(DuplicateError(what, do="write it once"), key.place)
            else:
                seen[key.text] = key.place
                yield key, value

    def _until(self, closing: str) -> Iterator[None]:
        """Once for each item: from behind the opening bracket to behind the closing one."""
        self._at += 1
        if self._next() == closing:
            self._at += 1
            return
        while True:
            yield None
            match self._next():
                case ",":
                    self._at += 1
                case mark if mark == closing:
                    self._at += 1
                    return
                case _:
                    raise self._wrong(f"a comma or {closing} is due here")

    def _string(self) -> Leaf:
        self._next()
        place = self._place()
        taken = self._take(_STRING, "a text in quotes is due here")
        text = str(json.loads(taken)) if "\\" in taken else taken[1:-1]
        if _HALF.search(text) is not None:
            raise ParseError("half a character, which is none", where=str(place), do=self._do)
        return Leaf(text, quoted=True, place=place)

    def _take(self, pattern: re.Pattern[str], otherwise: str) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise self._wrong(otherwise)
        self._at = found.end()
        return found[0]

    def _next(self) -> str:
        """The next character that is no blank, not taken yet; none at the end."""
        found = _BLANK.match(self._text, self._at)
        self._at = self._at if found is None else found.end()
        return self._text[self._at : self._at + 1]

    def _place(self) -> Place:
        line = bisect_right(self._lines, self._at)
        return Place(self._file, line, self._at - self._lines[line - 1] + 1)

    def _wrong(self, what: str) -> HapteraError:
        return ParseError(what, where=str(self._place()), do=self._do)
