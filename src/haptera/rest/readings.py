"""Readings of entities by programs outside haptera, as JSON over the API."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from haptera.model.facts import REPORTED_MS_MAX
from haptera.model.text import Content, Line, OneLine

# How much one request reports.
READINGS_MAX: Final = 1_000
SOURCE_CHARS_MAX: Final = 40
NOTE_CHARS_MAX: Final = 100

# Before the name of who reports: no module is called so.
REPORTED_BY: Final = "report:"


class ReadingBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The value of a variable as it was read `age_ms` ago, and what was seen besides, in words."""

    entity: Content
    variable: Line
    value: Line
    age_ms: Annotated[int, Meta(ge=0, le=REPORTED_MS_MAX)]
    note: Annotated[OneLine, Meta(max_length=NOTE_CHARS_MAX)] | None = None


class ReadingsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Readings, and the name of what they were read by, which is shown with each."""

    source: Annotated[OneLine, Meta(min_length=1, max_length=SOURCE_CHARS_MAX)]
    readings: Annotated[list[ReadingBody], Meta(min_length=1, max_length=READINGS_MAX)]


class ReadingsTaken(msgspec.Struct, frozen=True):
    """The number of readings taken; those older than what is known change nothing."""

    taken: int
