"""YAML as a tree, less what can blow up (depth, aliases) or would be ignored (tags).

Files of other programs may have aliases, merged keys and YAML's own tags, within a limit.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from haptera.model.errors import DuplicateError, ParseError
from haptera.site.syntax.tree import DEPTH_MAX, Branch, Errors, Leaf, Place, Series, Tree

# Libyaml's parser where it is there: it takes a twentieth of the time.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# What tells a person nothing of what was meant.
_OPAQUE: Final = re.compile("cannot start any token|alphabetic or numeric")
# What aliases may stand for in one document, counted each time.
ALIASED_MAX: Final = 100_000
_YAMLS_OWN: Final = "tag:yaml.org,2002:"
# A word that begins with what no plain text may begin with.
_KEPT: Final = re.compile(r"[@`%*&][^\s:,\]}]*")


def read_yaml(text: str, file: str, errors: Errors, depth_max: int = DEPTH_MAX) -> Tree:
    """The tree of one YAML document.

    Raises:
        HapteraError: the text is no YAML, is empty, or uses what no site file needs.
    """
    return _read(text, _Reader(yaml.parse(text, Loader=_LOADER), file, errors, depth_max))


def read_foreign_yaml(text: str, file: str, errors: Errors) -> Tree:
    """The tree of a document of another program, with what its aliases stand for.

    Raises:
        HapteraError: the text is no YAML, is empty, too large, or has tags of its own.
    """
    return _read(text, _Reader(yaml.parse(text, Loader=_LOADER), file, errors, DEPTH_MAX, {}))


def _read(text: str, reader: "_Reader") -> Tree:
    file = reader.file
    try:
        tree = reader.document()
    except yaml.MarkedYAMLError as error:
        place = _place(file, error.problem_mark or error.context_mark)
        begin = error.context_mark
        since = "" if begin is None else f" (line {begin.line + 1})"
        context = "" if error.context is None else f"{error.context}{since}: "
        what, do = f"{context}{error.problem}", "correct the YAML"
        if (meant := _meant(text, place, str(error.problem))) is not None:
            kept, do = meant
            what = kept if _OPAQUE.search(what) else what
        raise ParseError(what, where=str(place), do=do) from None
    except (ValueError, OverflowError):  # PyYAML's own parser lets these through.
        raise ParseError(
            "invalid character escape", where=file, do="use \\u with four digits"
        ) from None
    if tree is None:
        raise ParseError("the file is empty", where=file, do="begin with `cluster: NAME`")
    return tree


def _meant(text: str, place: Place, why: str) -> tuple[str, str] | None:
    """What is wrong and what to do, where it is a character that YAML keeps for itself."""
    lines = text.splitlines()
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "the line begins with a tab", "indent it with spaces: YAML takes no tabs there"
    # Of an alias or an anchor, it is its name that is missed.
    at = place.column - (2 if "did not find expected" in why else 1)
    word = _KEPT.match(line, at) if at >= 0 else None
    if word is None:
        return None
    what = f"{word[0]} begins with {word[0][0]}, which YAML keeps for itself"
    return what, f'put it in quotes: "{word[0]}"'


class _Reader:
    """Makes a tree of the events of one document; without `anchors`, it may have none."""

    def __init__(
        self,
        events: Iterator[Any],
        file: str,
        errors: Errors,
        depth_max: int,
        anchors: dict[str, Tree] | None = None,
    ) -> None:
        self._events = events
        self.file = file
        self._anchors = anchors
        self._aliased = 0
        self._errors = errors
        self._depth_max = depth_max
        self._depth = 0

    def document(self) -> Tree | None:
        """The one document that there is; None where there is none."""
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        tree = self._node(next(self._events))
        next(self._events)  # the document ends
        if not isinstance(event := next(self._events), yaml.StreamEndEvent):
            raise _refused("a second document begins here", event)
        return tree

    def _node(self, event: Any) -> Tree:
        self._check(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        tree = self._own(event)
        if event.anchor is not None and self._anchors is not None:
            self._anchors[event.anchor] = tree
        return tree

    def _alias(self, event: Any) -> Tree:
        """The node that an alias stands for; it counts each time, and as deep as it stands here."""
        tree = (self._anchors or {}).get(event.anchor)
        if tree is None:
            raise _refused(f"there is no anchor {event.anchor} before it", event)
        size, depth = _extent(tree)
        self._aliased += size
        if self._aliased > ALIASED_MAX or self._depth + depth > self._depth_max:
            raise _refused("aliases make more of this than is read", event)
        return tree

    def _own(self, event: Any) -> Tree:
        place = _place(self.file, event.start_mark)
        if isinstance(event, yaml.ScalarEvent):
            return Leaf(event.value, event.style not in (None, ""), place)
        self._depth += 1
        if self._depth > self._depth_max:
            raise _refused(f"deeper than {self._depth_max} levels", event)
        tree: Tree
        if isinstance(event, yaml.MappingStartEvent):
            tree = Branch(tuple(self._entries()), place)
        else:
            tree = Series(tuple(map(self._node, self._until(yaml.SequenceEndEvent))), place)
        self._depth -= 1
        return tree

    def _entries(self) -> Iterator[tuple[Leaf, Tree]]:
        seen: dict[str, Place] = {}
        merged = list[tuple[Leaf, Tree]]()
        for event in self._until(yaml.MappingEndEvent):
            key, value = self._node(event), self._node(next(self._events))
            if not isinstance(key, Leaf):
                self._errors.add(
                    ParseError("a key is not a text", do="put a name before the colon"), key.place
                )
            elif key.text == "<<" and self._anchors is not None:
                parts = value.items if isinstance(value, Series) else (value,)
                for part in parts:
                    if not isinstance(part, Branch):
                        raise _refused("<< merges mappings, and this is none", event)
                    merged += part.entries
            elif key.text in seen:
                what = f"the key {key.text} is given already, at {seen[key.text]}"
                self._errors.add(DuplicateError(what, do="write it once"), key.place)
            else:
                seen[key.text] = key.place
                yield key, value
        # What stands here itself beats what is merged, wherever it stands.
        for key, value in merged:
            if key.text not in seen:
                seen[key.text] = key.place
                yield key, value

    def _until(self, end: type[yaml.Event]) -> Iterator[Any]:
        while not isinstance(event := next(self._events), end):
            yield event

    def _check(self, event: Any) -> None:
        is_alias = isinstance(event, yaml.AliasEvent)
        if self._anchors is None and (is_alias or event.anchor is not None):
            raise _refused("a site file has no anchors and aliases (& and *)", event)
        tag = None if is_alias else event.tag
        if tag is not None and (self._anchors is None or not tag.startswith(_YAMLS_OWN)):
            raise _refused("tags are not used here", event)


def _extent(tree: Tree) -> tuple[int, int]:
    """The number of nodes of a tree, and its depth."""
    if isinstance(tree, Leaf):
        return 1, 0
    parts = tree.items if isinstance(tree, Series) else (one for _, one in tree.entries)
    inner = [*map(_extent, parts)]
    return 1 + sum(size for size, _ in inner), 1 + max((depth for _, depth in inner), default=0)


def _refused(what: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=what, problem_mark=event.start_mark)


def _place(file: str, mark: Any) -> Place:
    return Place(file, 0, 0) if mark is None else Place(file, mark.line + 1, mark.column + 1)
