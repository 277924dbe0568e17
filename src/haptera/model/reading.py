"""The declaration of a number that machines report: its name, its unit and its range, once."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NewType

from haptera.model.errors import DeclarationError

# The name of a reading, and of one of its items: a DIMM, a mount point, a GPU.
READING_BYTES_MAX: Final = 40
ITEM_BYTES_MAX: Final = 48
UNIT_BYTES_MAX: Final = 12
# The most items of one family on one entity, and the most series of one entity.
ITEMS_MAX: Final = 64
SERIES_MAX: Final = 256
# No sensor measures more than this; what is outside of a reading's own limits is no measurement.
VALUE_MAX: Final = 1e18

_READING: Final = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*")
_SERIES: Final = re.compile(r"([a-z][a-z0-9_.]*)(?:\[([A-Za-z0-9/._:#@+-]+)\])?")
_ODD: Final = re.compile(r"[^A-Za-z0-9/._:#@+-]")

# The name of one series of numbers: that of its reading, and of its item where that has some.
Series = NewType("Series", str)


@dataclass(frozen=True, slots=True)
class Reading:
    """A number that a module measures of each entity of a kind, again and again.

    Nothing is planned with it. With `items_max` it is a family: one number of each DIMM, say.
    What is measured outside of `low` to `high` is an error of the sensor, and left out.

    >>> Reading("node", "temp.inlet", unit="°C").series()
    'temp.inlet'
    >>> Reading("node", "disk.used", unit="bytes", items_max=16).series("/scratch")
    'disk.used[/scratch]'

    Raises:
        HapteraError: a name, unit or limit that cannot be.
    """

    kind: str
    name: str
    unit: str = ""
    items_max: int = 0
    low: float = -VALUE_MAX
    high: float = VALUE_MAX

    def __post_init__(self) -> None:
        if _READING.fullmatch(self.name) is None or len(self.name) > READING_BYTES_MAX:
            raise self._wrong(
                "is no name of a reading", f"write at most {READING_BYTES_MAX} of a-z, 0-9, _ and ."
            )
        if len(self.unit.encode()) > UNIT_BYTES_MAX:
            raise self._wrong("has too long a unit", f"use at most {UNIT_BYTES_MAX} bytes")
        if not 0 <= self.items_max <= ITEMS_MAX:
            raise self._wrong(f"has {self.items_max} items", f"choose from 0 to {ITEMS_MAX}")
        if not -VALUE_MAX <= self.low < self.high <= VALUE_MAX:
            raise self._wrong("has limits that cannot be", "choose a `low` below its `high`")

    def series(self, item: str | None = None) -> Series:
        """The name of its series, or of that of one item; characters that names lack become `_`.

        >>> Reading("node", "disk.used", items_max=9).series("/my disk")
        'disk.used[/my_disk]'
        """
        if (item is None) is not (self.items_max == 0):
            raise self._wrong(
                "is a family" if item is None else "is no family", "name an item of a family only"
            )
        return Series(self.name if item is None else f"{self.name}[{item_name(item)}]")

    def holds(self, value: float) -> bool:
        """True if the value is in range: NaN and infinities are not.

        >>> Reading("node", "temp.inlet", high=200.0).holds(float("nan"))
        False
        """
        return self.low <= value <= self.high

    def _wrong(self, what: str, do: str) -> DeclarationError:
        return DeclarationError(f"reading {self.kind}.{self.name} {what}", do=do)


def item_name(text: str) -> str:
    """The name of an item, made valid from any text."""
    return _ODD.sub("_", text)[:ITEM_BYTES_MAX] or "_"


def split_series(name: str) -> tuple[str, str | None] | None:
    """The names of the reading and of the item; None where this names no series.

    >>> split_series("ecc.corrected[dimm0]"), split_series("temp.inlet"), split_series("a b")
    (('ecc.corrected', 'dimm0'), ('temp.inlet', None), None)
    """
    found = _SERIES.fullmatch(name)
    if found is None:
        return None
    reading, item = found[1], found[2]
    fits = len(reading) <= READING_BYTES_MAX and len(item or "") <= ITEM_BYTES_MAX
    return (reading, item) if fits else None


def fitting(readings: Mapping[str, Reading], values: Mapping[Any, float]) -> dict[Series, float]:
    """The valid measurements of one entity among these, by series; of too many items, the first.

    >>> used = Reading("node", "disk.used", items_max=1)
    >>> told = {"disk.used[/]": 1.0, "disk.used[/b]": 2.0, "disk.free": 3.0, "disk.used": 4.0}
    >>> fitting({"disk.used": used}, told)
    {'disk.used[/]': 1.0}
    """
    found: dict[Series, float] = {}
    items: Counter[str] = Counter()
    for series, value in sorted(values.items()):
        reading, item = split_series(series) or ("", None)
        one = readings.get(reading)
        if one is None or (item is None) is not (one.items_max == 0) or not one.holds(value):
            continue
        items[reading] += 1
        if items[reading] <= max(1, one.items_max) and len(found) < SERIES_MAX:
            found[Series(series)] = value
    return found
