"""The event logs of a system (LogService and LogEntry, DSP2046), counted from where each was read.

Services list their entries the oldest or the newest first, and set their clocks back: new is what
was not there before, by all that identifies an entry. So one that was cleared is counted anew.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import msgspec

from haptera.modules.bmc_sensors import events
from haptera.modules.kept import Count
from haptera.modules.redfish.chassis import Read, expanded
from haptera.modules.redfish.documents import Document, path_of
from haptera.sdk import Measured

LOGS_MAX: Final = 8
# Pages of a log that are read, and entries of it that are known again.
PAGES_MAX: Final = 16
ENTRIES_MAX: Final = 4_096
_KEY_BYTES: Final = 8
# What says which entry it is; of an entry that says less, all of it that there is.
_IDENTITY: Final = ("@odata.id", "Id", "Created", "MessageId", "Message")
# The severities that are counted: all others are what a service has done, and is well.
COUNTED: Final = ("Warning", "Critical")
# An event that has gone says so by its code (LogEntry, EntryCode), as do sensors of IPMI.
_GONE: Final = ("Deassert", "State Deasserted")


@dataclass(frozen=True, slots=True)
class EventLog:
    """The entries of a log; `is_whole` where all of its pages were read.

    It is `broken_off` where one could not be read, and not where there are more than are read.
    """

    path: str
    entries: Sequence[Document]
    is_whole: bool = False
    broken_off: bool = False


class LogsCursor(msgspec.Struct, frozen=True):
    """The entries that were read of each log, by their keys, and the counts so far."""

    logs: Mapping[str, Sequence[str]] = {}
    counts: Mapping[str, Count] = {}


def logs_of(read: Read, system: Document, system_path: str) -> Iterator[EventLog]:
    """The logs of a system that was read at this path; one that is switched off is left out."""
    place = system.link("LogServices")
    if place is None or (services := read(path := path_of(place, system_path))) is None:
        return
    for link in services.links("Members")[:LOGS_MAX]:
        service = read(service_path := path_of(link, path))
        if service is None or service.members.get("ServiceEnabled") is False:
            continue
        entries = service.link("Entries")
        if entries is not None:
            yield _log(read, path_of(entries, service_path))


def advanced(cursor: LogsCursor | None, logs: Sequence[EventLog]) -> LogsCursor:
    """The cursor after these logs. What a log held when it was first read is history."""
    before = cursor or LogsCursor()
    counts, keys = Counter(before.counts), dict(before.logs)
    for log in logs:
        known = None if (read := before.logs.get(log.path)) is None else {*read}
        if known is None and log.broken_off:
            continue  # The rest of its history would be new when it is read.
        found = {_key(one): one for one in log.entries}
        if known is not None:
            new = (one for key, one in found.items() if key not in known)
            counts.update(severity for one in new if (severity := _counted(one)) is not None)
        # Of a log that was read in part, what was not read is not gone.
        rest = () if log.is_whole else (read or ())
        keys.pop(log.path, None)
        keys[log.path] = [*dict.fromkeys([*found, *rest])][:ENTRIES_MAX]
    # Of logs that are listed no more, those that were read last.
    return LogsCursor(dict([*keys.items()][-LOGS_MAX:]), dict(counts))


def measured(cursor: LogsCursor) -> Measured:
    """The numbers of the logs; none of a system that has no log."""
    if not cursor.logs:
        return {}
    return {events.series(one): cursor.counts.get(one, 0) for one in COUNTED}


def _log(read: Read, path: str) -> EventLog:
    found: list[Document] = []
    page: str | None = path
    for _ in range(PAGES_MAX):
        if page is None or len(found) >= ENTRIES_MAX:
            break
        answer = _page(read, page)
        if answer is None:
            return EventLog(path, found, broken_off=True)
        found += answer.documents("Members")
        following = answer.link("Members@odata.nextLink")
        page = None if following is None else path_of(following, page)
    return EventLog(path, found[:ENTRIES_MAX], is_whole=page is None)


def _page(read: Read, path: str) -> Document | None:
    """A page with its entries; some services list links only, unless they are asked for more."""
    for place in (path, expanded(path)):
        answer = read(place)
        members = () if answer is None else answer.documents("Members")
        if answer is None or all(one.members.keys() - {"@odata.id"} for one in members):
            return answer
    return None


def _key(entry: Document) -> str:
    said = repr([entry.text(one) for one in _IDENTITY])
    return blake2b(said.encode(errors="replace"), digest_size=_KEY_BYTES).hexdigest()


def _counted(entry: Document) -> str | None:
    severity = entry.text("Severity")
    return severity if severity in COUNTED and entry.text("EntryCode") not in _GONE else None
