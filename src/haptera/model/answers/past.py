"""What was changed: each value with what it was before, who asked for it, when, and why."""

from enum import StrEnum
from typing import Final

import msgspec


class Changed(msgspec.Struct, frozen=True, gc=False):
    """One change of what is desired.

    Without a `name` it is the entity itself that was declared or undeclared, its values then are
    its attributes, as a JSON object. A value that is None was not there. `revision` is that of the
    whole write, by which it can be reverted; who wrote is not known of what is older than that.
    """

    revision: int
    at_s: float
    entity: str
    name: str | None
    before: str | int | None
    after: str | int | None
    owner: str
    owner_before: str | None
    who: str | None = None
    why: str | None = None


class Deed(msgspec.Struct, frozen=True, gc=False):
    """Something that somebody asked for: a write, whose `revision` tells which, or else `what`."""

    at_s: float
    who: str
    what: str
    revision: int | None = None
    why: str | None = None


class Page(msgspec.Struct, frozen=True, gc=False):
    """Changes, latest first; `before` asks for the ones before, None where these are all."""

    changes: list[Changed]
    before: int | None


class Sort(StrEnum):
    """What it is that happened to an entity."""

    SEEN = "seen"  # a variable has another value, `x?` where it is remembered, or none
    STANDS = "stands"  # it stands elsewhere, or for another reason
    TRIED = "tried"  # a step ended: it worked, or it failed
    GONE = "gone"  # it is no longer there
    BEGUN = "begun"  # of no entity: the parent's process began, which knew nothing yet
    LOST = "lost"  # of no entity: so many events could not be recorded


class Happened(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened.

    `name` is the variable or the part; `value` its value, the condition, or what came of the
    part; `note` who saw it, why it stands so, or the outcome in words.
    """

    at_s: float
    entity: str
    sort: Sort
    name: str | None = None
    value: str | None = None
    note: str | None = None


# The end of a value that was only remembered.
REMEMBERED: Final = "?"


class PastView(msgspec.Struct, frozen=True, gc=False):
    """One entity as it was at a time: what was desired, what was known, where it stood and why.

    A value that was only remembered ends in `?`.
    """

    entity: str
    attributes: dict[str, str]
    desired: dict[str, str | int]
    observed: dict[str, str]
    condition: str | None = None
    why: str | None = None
