"""What was changed: each value with what it was before, who asked for it, when, and why."""

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
