"""Subscriptions: the changes that a listener wants, and how far it has received them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from haptera.model.declared.desired_check import nearest
from haptera.model.entity import EntityId
from haptera.model.errors import ParseError, UnknownNameError
from haptera.model.news import EVERY_TYPE, News, Types
from haptera.selectors.selector import ALL, Selector, parse_selector


@dataclass(frozen=True, slots=True)
class Subscription:
    """The changes that a listener receives: of these types, of entities of these kinds, selected.

    >>> racks = Subscription(kinds=frozenset({"node"}), selector=parse_selector("rack1*"))
    >>> EntityId("node", "rack1n1", "rack1n1") in racks, EntityId("node", "n9", "n9") in racks
    (True, False)
    """

    types: Types = EVERY_TYPE
    kinds: frozenset[str] | None = None
    selector: Selector = field(default_factory=lambda: parse_selector(ALL))

    def __contains__(self, entity: EntityId) -> bool:
        """Whether it may be wanted; where more than names are selected by, its state decides."""
        return (self.kinds is None or entity.kind in self.kinds) and self.selector.could_mean(
            entity
        )


def parse_wanted(
    types: Iterable[str] | None, kinds: Iterable[str] | None, select: str | None
) -> Subscription:
    """What is wanted, in the words of a person or a program; None is all there is.

    Raises:
        HapteraError: there is no such type, the selector is none, or asks for an age.
    """
    chosen = EVERY_TYPE if types is None else frozenset(map(_type, types))
    selector = parse_selector(ALL if select is None else select)
    if selector.by_age:
        what = f"{selector}: an age, or a number, changes without an event"
        raise ParseError(what, do="leave it out here; `haptera status` takes it")
    return Subscription(chosen, None if kinds is None else frozenset(kinds), selector)


def _type(text: str) -> News:
    try:
        return News(text)
    except ValueError:
        raise UnknownNameError(f"there is no event type {text!r}", do=nearest(text, News)) from None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far one has heard, written `EPOCH.NUMBER`; an epoch is one process's numbering.

    >>> parse_cursor("7-ab.12")
    Cursor(epoch='7-ab', number=12)
    """

    epoch: str
    number: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.number}"


def parse_cursor(text: str) -> Cursor | None:
    """The cursor that is written so; None where that is none."""
    epoch, dot, number = text.rpartition(".")
    fits = dot and number.isascii() and number.isdigit() and len(number) < 20
    return Cursor(epoch, int(number)) if fits else None
