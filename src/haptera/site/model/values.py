"""What is said of entities: values as written, and which of several for one name holds."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from haptera.kinds import service
from haptera.model.declared.desired_check import check_attribute, check_desired, find_desirable
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.site.syntax.template import Known, fill
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Tree, entries_of, leaf

PROFILES_MAX: Final = 64

# One that is the same everywhere, or a template to be filled for each node.
Value = str | int | Leaf
Entries = tuple[tuple[Leaf, Value], ...]


class Rank(IntEnum):
    """Whose word holds: that of the higher. A profile's place in its node's list is added."""

    DATA = 0  # what `services` and `modules` say, wherever these run
    DEFAULTS = 1
    PROFILE = 2
    NODE = PROFILE + PROFILES_MAX


@dataclass(frozen=True, slots=True)
class Given:
    value: Value
    place: Place
    rank: int


@dataclass(slots=True)
class Values:
    """What is said of one entity: of each name the value of the highest rank."""

    whose: EntityId
    given: dict[str, Given] = field(default_factory=dict)

    def give(self, entries: Entries, rank: int, errors: Errors) -> None:
        """Take these in, as said with this rank; two of one rank for one name are too many."""
        for key, value in entries:
            held = self.given.get(key.text)
            if held is None or held.rank < rank:
                self.given[key.text] = Given(value, key.place, rank)
            elif held.rank == rank:
                errors.add(
                    HapteraError(
                        f"{key.text} of {self.whose} is given twice, here and at {held.place}",
                        do="take one of the two out, or make their node-sets differ",
                    ),
                    key.place,
                )

    def desired(self, kind: Kind, known: Known, errors: Errors) -> dict[str, str | int]:
        """All of it, filled with what is known there."""
        found: dict[str, str | int] = {}
        for name, one in self.given.items():
            if isinstance(one.value, Leaf):
                with errors.at(one.value.place):
                    found[name] = check_desired(kind, name, fill(one.value.text, known))
            else:
                found[name] = one.value
        return found


def read_desired(kind: Kind, tree: Tree, errors: Errors) -> Entries:
    """What a mapping desires of entities of a kind; a template is looked at when it is filled."""
    return tuple(_checked(kind, tree, errors))


def datum(name: str, value: Tree) -> Leaf:
    """One datum; `ready: {http: /path}` says it in one text, as `http /path`.

    Raises:
        HapteraError: it is a mapping, or a list, where neither is due.
    """
    if name == service.ready.name and isinstance(value, Branch) and len(value.entries) == 1:
        way, of = value.entries[0][0], leaf(value.entries[0][1])
        return Leaf(f"{way.text} {of.text}".strip(), quoted=True, place=value.place)
    return leaf(value)


def _checked(kind: Kind, tree: Tree, errors: Errors) -> Iterator[tuple[Leaf, Value]]:
    for key, value in entries_of(tree, errors):
        with errors.at(value.place):
            text = datum(key.text, value)
            if is_template(text):
                find_desirable(kind, key.text)
                yield key, text
            else:
                yield key, check_desired(kind, key.text, text.text)


def read_attributes(kind: Kind, tree: Tree, errors: Errors) -> Entries:
    """The attributes that a mapping gives entities of a kind; no part changes them."""
    found: list[tuple[Leaf, Value]] = []
    for key, value in entries_of(tree, errors):
        with errors.at(value.place):
            text = leaf(value)
            checked = check_attribute(kind, key.text, "" if is_template(text) else text.text)
            found.append((key, text if is_template(text) else checked))
    return tuple(found)


def is_template(text: Leaf) -> bool:
    return "{" in text.text or "}" in text.text
