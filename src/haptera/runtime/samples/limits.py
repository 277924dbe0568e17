"""Limits on kept measurements, apart from the store: settings need no SQLite."""

import msgspec


class SampleLimits(msgspec.Struct, frozen=True):
    """The most that is kept: each of the two files has half of the bytes."""

    bytes_max: int = 2 << 30
    raw_hours: int = 6
    days: int = 28
