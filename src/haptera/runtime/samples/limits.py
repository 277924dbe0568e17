"""How much is kept of what was measured, apart from the store: settings need no SQLite."""

import msgspec


class SampleLimits(msgspec.Struct, frozen=True):
    """How much is kept at most: each of the two files has half of the bytes."""

    bytes_max: int = 2 << 30
    raw_hours: int = 6
    days: int = 28
