"""Wall time and durations as people write and read them; pure, for a clock is nobody's here."""

import re
from datetime import UTC, datetime
from typing import Final

from haptera.model.errors import HapteraError

# The last second of the year 9999, after which dates have no form.
WALL_S_MAX: Final = 253_402_300_799

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")


def utc_text(wall_s: int) -> str:
    """Seconds since 1970 as a date and time.

    >>> utc_text(1_795_284_000)
    '2026-11-21 18:00 UTC'
    """
    return f"{datetime.fromtimestamp(wall_s, UTC):%Y-%m-%d %H:%M} UTC"


def duration_text(ms: int) -> str:
    """So many ms as `parse_duration_ms` reads them, in the largest unit that fits.

    >>> duration_text(5_400_000), duration_text(250)
    ('90m', '250ms')
    """
    unit = max((one for one in _UNITS_MS if ms % _UNITS_MS[one] == 0), key=_UNITS_MS.__getitem__)
    return f"{ms // _UNITS_MS[unit]}{unit}"


def parse_duration_ms(text: str) -> int:
    """How long a person means, in ms.

    >>> parse_duration_ms("90m"), parse_duration_ms("250ms")
    (5400000, 250)

    Raises:
        HapteraError: the text is no duration.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise HapteraError(f"{text!r} is no duration", do="write 500ms, 30s, 15m, 2h or 1d")
    return int(found[1]) * _UNITS_MS[found[2]]
