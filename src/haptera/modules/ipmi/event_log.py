"""The System Event Log of a BMC (IPMI 2.0, chapter 31), counted from where it was last read.

What is new is what follows the record that was read last, in the order of the log. Times say
nothing of that: a BMC's clock is reset with it, starts in 1970, and wraps.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from haptera.modules.bmc_sensors import events
from haptera.modules.ipmi.answers import fields_of
from haptera.modules.kept import Count
from haptera.sdk import Measured, Reading, Series

# Records read at once, the newest ones: of more in one round, the older ones are not counted.
RECORDS_MAX: Final = 128

used = Reading("node", "sel.used_percent", unit="%", low=0, high=100)
corrected = Reading("node", "sel.corrected", low=0)
uncorrected = Reading("node", "sel.uncorrected", low=0)

READINGS: Final = (used, events, corrected, uncorrected)

_MEMORY: Final = {
    "Correctable ECC": corrected,
    "Uncorrectable ECC": uncorrected,
}
_RECORD: Final = "SEL Record ID"
_MAKERS: Final = "maker"
# A BMC that does not say when it changed its log has to be read each time.
_NOT_SAID: Final = "Not Available"


class LogInfo(msgspec.Struct, frozen=True):
    """The state of a BMC's log as a whole."""

    entries: int
    used_percent: float | None
    # How many entries, when one was added and deleted last, and that there was no room for more.
    changes: tuple[str | None, str | None, str | None, str | None]

    @property
    def added_at(self) -> str | None:
        return self.changes[1]

    @property
    def erased_at(self) -> str | None:
        return self.changes[2]


class LogCursor(msgspec.Struct, frozen=True):
    """A cursor in a log, with the counts up to it; it outlives this process."""

    info: LogInfo
    # The record that was read last, by all that it says; None where the log was empty.
    last: str | None = None
    counts: Mapping[str, Count] = {}


def info_of(printed: str) -> LogInfo:
    """The answer to `sel info`; of what the BMC does not say, None."""
    said = fields_of(printed)
    entries, percent = said.get("Entries", ""), said.get("Percent Used", "").removesuffix("%")
    return LogInfo(
        int(entries) if entries.isdecimal() else 0,
        float(percent) if percent.isdecimal() else None,
        (
            said.get("Entries"),
            said.get("Last Add Time"),
            said.get("Last Del Time"),
            said.get("Overflow"),
        ),
    )


def to_read(cursor: LogCursor | None, info: LogInfo) -> int:
    """The number of records, of the newest, to read now.

    A log that is read for the first time is history: only its end is read.
    """
    if info.entries == 0:
        return 0
    if cursor is None:
        return 1
    is_told = info.added_at not in (None, _NOT_SAID)
    if cursor.info == info and is_told and cursor.last is not None:
        return 0
    return min(RECORDS_MAX, info.entries)


def advanced(cursor: LogCursor | None, info: LogInfo, printed: str) -> LogCursor:
    """The cursor after the records that `sel list last` printed."""
    records = _records(printed)
    if cursor is None:
        return LogCursor(info, records[-1] if records else None)
    # The first record after it was cleared may look like one that was in it before.
    is_same = info.entries > 0 and cursor.info.erased_at == info.erased_at
    last = cursor.last if is_same else None
    counts = Counter(cursor.counts)
    for record in _new(last, records):
        counts.update(_counted(fields_of(record)))
    return LogCursor(info, records[-1] if records else last, dict(counts))


def measured(cursor: LogCursor) -> Measured:
    """The numbers of a log that was read."""
    found: dict[Reading | Series, float | None] = {
        used: cursor.info.used_percent,
        corrected: float(cursor.counts.get(corrected.name, 0)),
        uncorrected: float(cursor.counts.get(uncorrected.name, 0)),
    }
    for name, count in cursor.counts.items():
        if name not in (corrected.name, uncorrected.name):
            found[Series(name)] = float(count)
    return found


def _new(last: str | None, records: Sequence[str]) -> Sequence[str]:
    """Those after the one read last; where it is gone, cleared or overwritten, all of them."""
    return records[records.index(last) + 1 :] if last in records else records


def _records(printed: str) -> list[str]:
    """The records that `-v sel list` prints, the oldest first."""
    return [f"{_RECORD}{one}".strip() for one in printed.split(_RECORD)[1:]]


def _counted(record: Mapping[str, str]) -> list[str]:
    """The names of the series that a record counts in; none where an event has gone."""
    if record.get("Event Direction", "").startswith("Deassertion"):
        return []
    memory = _MEMORY.get(record.get("Description", ""))
    return [
        str(events.series(record.get("Sensor Type", _MAKERS))),
        *([] if memory is None else [memory.name]),
    ]
