"""TOML as a tree: the standard library says what is TOML, and this finds where all of it stands."""

import re
import tomllib
from typing import Final

from haptera.config.tree import DEPTH_MAX, Branch, Leaf, Place, Series, Tree
from haptera.model.errors import HapteraError

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
# Of a string its quotes too; each in the order in which it must be tried.
_STRING: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
# A date may have a space before its time.
_SCALAR: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]+|[^\s,\]}#]+")
_INTEGER: Final = re.compile(r"[+-]?[0-9_]+|0[xob][0-9A-Fa-f_]+")
_WHERE: Final = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)


def read_toml(text: str, file: str) -> Tree:
    """The tree of a TOML document.

    Raises:
        HapteraError: the text is no TOML, or deeper than a site file may be.
    """
    # Line ends are one character, as they are for the standard library.
    text = text.replace("\r\n", "\n")
    try:
        tomllib.loads(text)
    except RecursionError:
        raise HapteraError(
            f"deeper than {DEPTH_MAX} levels", where=file, do="write tables on lines of their own"
        ) from None
    except ValueError as error:
        raise _mend(str(error), text, file) from None
    return _Scanner(text, file).document()


def _mend(message: str, text: str, file: str) -> HapteraError:
    found = _WHERE.fullmatch(message)
    if found is not None:
        what, place = found[1], Place(file, int(found[2]), int(found[3]))
    else:
        what = message.removesuffix(" (at end of document)")
        last = text.rpartition("\n")[2]
        place = Place(file, text.count("\n") + 1, len(last) + 1)
    what = what[:1].lower() + what[1:]
    return HapteraError(what, where=str(place), do="mend the TOML")


class _Table:
    """A mapping that later lines may add to."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.entries: dict[str, tuple[Leaf, _Table | _Array | Tree]] = {}

    def inner(self, key: Leaf) -> "_Table":
        """The table of this name; of an array of tables the last."""
        there = self.entries.setdefault(key.text, (key, _Table(key.place)))[1]
        if isinstance(there, _Array):
            there = there.tables[-1]
        assert isinstance(there, _Table)
        return there

    def tree(self) -> Branch:
        return Branch(tuple((key, _tree(one)) for key, one in self.entries.values()), self.place)


class _Array:
    """An array of tables, each begun by a header of its own."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.tables: list[_Table] = []


def _tree(one: "_Table | _Array | Tree") -> Tree:
    if isinstance(one, _Table):
        return one.tree()
    if isinstance(one, _Array):
        return Series(tuple(table.tree() for table in one.tables), one.place)
    return one


class _Scanner:
    """Reads a text that is known to be TOML, so that nothing in it has to be checked again."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._at = 0
        self._depth = 1
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._line = 0

    def document(self) -> Branch:
        root = here = _Table(Place(self._file, 1, 1))
        while self._skip() < len(self._text):
            if self._next() == "[":
                here = self._header(root)
            else:
                self._entry(here)
        return root.tree()

    def _header(self, root: _Table) -> _Table:
        """`[a.b]` or `[[a.b]]`: the table that the next lines are about."""
        many = self._text.startswith("[[", self._at)
        place = self._place()
        self._at += 2 if many else 1
        *outer, last = self._keys()
        self._check_depth(len(outer) + 2 + many, place)
        self._skip()
        self._at += 2 if many else 1
        table = root
        for key in outer:
            table = table.inner(key)
        if not many:
            return table.inner(last)
        array = table.entries.setdefault(last.text, (last, _Array(place)))[1]
        assert isinstance(array, _Array)
        array.tables.append(_Table(place))
        return array.tables[-1]

    def _entry(self, table: _Table) -> None:
        """`a.b = value`."""
        *outer, last = self._keys()
        self._check_depth(self._depth + len(outer), last.place)
        self._skip()
        self._at += 1  # the sign between key and value
        self._skip()
        for key in outer:
            table = table.inner(key)
        self._depth += len(outer)
        table.entries[last.text] = last, self._value()
        self._depth -= len(outer)

    def _keys(self) -> list[Leaf]:
        """The names of a key, with dots between them."""
        names = [self._name()]
        while self._skip() < len(self._text) and self._next() == ".":
            self._at += 1
            names.append(self._name())
        return names

    def _name(self) -> Leaf:
        self._skip()
        if self._next() in "\"'":
            return self._string()
        place, found = self._place(), _BARE.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return Leaf(found[0], quoted=True, place=place)

    def _value(self) -> Tree:
        match self._next():
            case "[":
                return self._array()
            case "{":
                return self._inline()
            case "'" | '"':
                return self._string()
            case _:
                return self._scalar()

    def _array(self) -> Series:
        place, items = self._place(), []
        self._open(place)
        while self._text[self._skip()] != "]":
            items.append(self._value())
            if self._text[self._skip()] == ",":
                self._at += 1
        self._close()
        return Series(tuple(items), place)

    def _inline(self) -> Branch:
        table = _Table(self._place())
        self._open(table.place)
        while self._text[self._skip()] != "}":
            self._entry(table)
            if self._text[self._skip()] == ",":
                self._at += 1
        self._close()
        return table.tree()

    def _string(self) -> Leaf:
        place, found = self._place(), _STRING.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        plain = found[0][1:-1]
        if "\\" in found[0] or found[0][1:3] == found[0][:1] * 2:
            plain = tomllib.loads(f"x = {found[0]}")["x"]
        return Leaf(plain, quoted=True, place=place)

    def _scalar(self) -> Leaf:
        place, found = self._place(), _SCALAR.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        text = found[0]
        if _INTEGER.fullmatch(text):
            text = str(int(text, 0))
        return Leaf(text, quoted=False, place=place)

    def _open(self, place: Place) -> None:
        self._depth += 1
        self._check_depth(self._depth, place)
        self._at += 1

    def _close(self) -> None:
        self._depth -= 1
        self._at += 1

    def _check_depth(self, depth: int, place: Place) -> None:
        if depth > DEPTH_MAX:
            raise HapteraError(
                f"deeper than {DEPTH_MAX} levels", where=str(place), do="write it flatter"
            )

    def _skip(self) -> int:
        """Past blanks and comments."""
        found = _BLANK.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return self._at

    def _next(self) -> str:
        return self._text[self._at]

    def _place(self) -> Place:
        while self._line + 1 < len(self._lines) and self._lines[self._line + 1] <= self._at:
            self._line += 1
        return Place(self._file, self._line + 1, self._at - self._lines[self._line] + 1)
