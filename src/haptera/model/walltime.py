"""Wall time and durations as people write and read them; pure, for a clock is nobody's here."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from msgspec import Meta

from haptera.model.errors import ParseError

# The last second of the year 9999, after which dates have no form.
WALL_S_MAX: Final = 253_402_300_799
# Some 35 years, whose nanoseconds a time has room for: of a neighbour's word it is the limit.
AGE_MS_MAX: Final = 1 << 40
AgeMs = Annotated[int, Meta(ge=0, le=AGE_MS_MAX)]

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# What people read; minutes are no metres.
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")


def utc_text(wall_s: int) -> str:
    """Seconds since 1970 as a date and time, to the minute.

    >>> utc_text(1_795_284_000)
    '2026-11-21 18:00 UTC'
    """
    return f"{datetime.fromtimestamp(wall_s, UTC):%Y-%m-%d %H:%M} UTC"


def coming_text(wall_s: float, in_ms: int) -> str:
    """The time in so many ms from now, to the minute, with its date where that is far.

    >>> coming_text(1_795_284_000, 720_000), coming_text(1_795_284_000, 90_000_000)
    ('18:12 UTC', '2026-11-22 19:00 UTC')
    """
    text = utc_text(int(wall_s) + in_ms // 1_000)
    return text if in_ms >= _UNITS_MS["d"] else text.partition(" ")[2]


def utc_text_s(wall_s: int) -> str:
    """As `utc_text`, to the second."""
    return f"{datetime.fromtimestamp(wall_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration_text(ms: int) -> str:
    """So many ms as `parse_duration_ms` reads them, in the largest unit that fits.

    >>> duration_text(5_400_000), duration_text(250)
    ('90m', '250ms')
    """
    unit = max((one for one in _UNITS_MS if ms % _UNITS_MS[one] == 0), key=_UNITS_MS.__getitem__)
    return f"{ms // _UNITS_MS[unit]}{unit}"


def duration(ms: int) -> str:
    """How long, as a person would say it.

    >>> duration(312), duration(42_000), duration(7_500_000)
    ('0.3 s', '42 s', '2 h')
    """
    if ms < 10_000:
        return f"{ms / 1000:.1f} s"
    unit_ms, unit = next(one for one in _UNITS if ms >= one[0])
    return f"{ms // unit_ms} {unit}"


def span(ms: int) -> str:
    """Exactly how long, in the largest unit that says so.

    >>> span(1_800_000), span(90_000), span(2_500)
    ('30 min', '90 s', '2.5 s')
    """
    unit_ms, unit = next((one for one in _UNITS if ms % one[0] == 0), (1_000, "s"))
    return f"{ms / unit_ms:g} {unit}"


def parse_duration_ms(text: str) -> int:
    """How long a person means, in ms.

    >>> parse_duration_ms("90m"), parse_duration_ms("250ms")
    (5400000, 250)

    Raises:
        HapteraError: the text is not a duration.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ParseError(f"{text!r} is not a duration", do="write 500ms, 30s, 15m, 2h or 1d")
    return int(found[1]) * _UNITS_MS[found[2]]


def parse_when(text: str, now_s: float) -> int:
    """A time in seconds since 1970: how long ago (`10m`), or a date and time in UTC.

    >>> parse_when("10m", 1_795_284_600)
    1795284000
    >>> parse_when("2026-11-21 18:00", 0) == parse_when("2026-11-21T18:00:00Z", 0) == 1_795_284_000
    True

    Raises:
        HapteraError: the text is none of these, or before 1970.
    """
    if _DURATION.fullmatch(text):
        at_s = int(now_s) - parse_duration_ms(text) // 1_000
    else:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise ParseError(
                f"{text!r} is not a time", do="write 10m (ago), 2h, or a date: 2026-11-21 18:00"
            ) from None
        at_s = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    if at_s < 0:
        raise ParseError(f"{text!r} is before 1970", do="name a later time")
    return at_s
