"""YAML as a tree of texts that know their place; nothing in it is taken for a number or a yes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from haptera.model.errors import HapteraError, InputError

SITE_BYTES_MAX = 262_144
DEPTH_MAX = 16
ERRORS_MAX = 20

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FRACTION = re.compile(r"-?[0-9]{1,17}\.[0-9]{1,17}")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands, as people count: from 1."""

    line: int
    column: int
    file: str

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
    """What is wrong with one file: the first error of each place, ERRORS_MAX in all."""

    def __init__(self) -> None:
        self._found: dict[Place, HapteraError] = {}

    def add(self, what: str, place: Place, do: str | None = None) -> None:
        """Remember an error.

        Raises:
            InputError: there are too many to go on.
        """
        self._found.setdefault(place, HapteraError(what, where=str(place), do=do))
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
            self.add(what, place, error.do)

    def check(self) -> None:
        """Raise all errors, as one, in the order of their places.

        Raises:
            InputError: there are some.
        """
        if self._found:
            raise InputError([error for _, error in sorted(self._found.items())])


def read_tree(text: str, file: str, errors: Errors) -> Tree:
    """The tree of one YAML document.

    Raises:
        HapteraError: the text is too long, no YAML, empty, or uses what no site file needs.
    """
    if len(text.encode(errors="replace")) > SITE_BYTES_MAX:
        raise HapteraError(
            f"a site file takes {SITE_BYTES_MAX} bytes at most", where=file, do="use node-sets"
        )
    try:
        node = _Composer(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        place = _place(file, error.problem_mark or error.context_mark)
        begin = error.context_mark
        since = "" if begin is None else f" (line {begin.line + 1})"
        context = "" if error.context is None else f"{error.context}{since}: "
        what = f"{context}{error.problem}"
        raise HapteraError(what, where=str(place), do="mend the YAML") from None
    except yaml.YAMLError as error:
        what = str(error).partition("\n")[0]
        raise HapteraError(what, where=file, do="write it as UTF-8 text") from None
    except (ValueError, OverflowError):  # PyYAML lets these through
        raise HapteraError(
            "an escape names no character", where=file, do="use \\u with four digits"
        ) from None
    if node is None:
        raise HapteraError("the file is empty", where=file, do="begin with `cluster: NAME`")
    return _tree(node, file, errors)


def leaf(tree: Tree) -> Leaf:
    """The one value that is due here.

    Raises:
        HapteraError: there is none, or more.
    """
    if not isinstance(tree, Leaf):
        raise HapteraError("a value is due here, not a list or mapping", do="write one value")
    if tree.empty:
        raise HapteraError("there is no value", do='write one, or "" for an empty text')
    return tree


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


class _Composer(yaml.SafeLoader):
    """PyYAML's own, less what can blow up (depth, aliases) or would be ignored (tags)."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs lack it
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            self._refuse("anchors and aliases are not used here", event)
        if getattr(event, "tag", None) is not None:
            self._refuse("tags are not used here", event)
        if self._depth == DEPTH_MAX:
            self._refuse(f"deeper than {DEPTH_MAX} levels", event)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _refuse(self, what: str, event: yaml.Event) -> None:
        mark = event.start_mark
        assert isinstance(mark, yaml.Mark)
        raise yaml.MarkedYAMLError(problem=what, problem_mark=mark)


def _tree(node: yaml.Node, file: str, errors: Errors) -> Tree:
    place = _place(file, node.start_mark)
    if isinstance(node, yaml.MappingNode):
        return Branch(tuple(_entries(node, file, errors)), place)
    if isinstance(node, yaml.SequenceNode):
        return Series(tuple(_tree(item, file, errors) for item in node.value), place)
    assert isinstance(node, yaml.ScalarNode)
    return Leaf(node.value, node.style is not None, place)


def _entries(node: yaml.MappingNode, file: str, errors: Errors) -> Iterator[tuple[Leaf, Tree]]:
    seen: dict[str, Place] = {}
    for key_node, value_node in node.value:
        key = _tree(key_node, file, errors)
        if not isinstance(key, Leaf):
            errors.add("a key is not a text", key.place, "put a name before the colon")
        elif key.text in seen:
            errors.add(
                f"the key {key.text} is there already, at {seen[key.text]}",
                key.place,
                "write it once",
            )
        else:
            seen[key.text] = key.place
            yield key, _tree(value_node, file, errors)


def _place(file: str, mark: yaml.Mark | None) -> Place:
    return Place(0, 0, file) if mark is None else Place(mark.line + 1, mark.column + 1, file)
