"""Recorded samples, as lines of CSV or JSON, and what a rule would have said of them, and when."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.health.judge import Symptom, is_of
from haptera.health.readings import Timed
from haptera.health.rule import HealthRule
from haptera.health.track import Track
from haptera.model.errors import Code, HapteraError, LimitError, ParseError

SAMPLES_MAX: Final = 1_000_000
LINE_BYTES_MAX: Final = 4_096
COLUMNS: Final = ("at", "series", "value")
NAMELESS: Final = "-"


class RecordedSample(msgspec.Struct, frozen=True, gc=False):
    """One number of a file: when (in seconds since 1970), of what, how much."""

    at: float
    series: str
    value: float
    entity: str = NAMELESS


@dataclass(frozen=True, slots=True)
class Told:
    """The verdict of a rule on a series from a time on; None: it has ended."""

    at: float
    entity: str
    series: str
    symptom: Symptom | None


def parse_recorded(lines: Iterable[bytes], where: str) -> Iterator[RecordedSample]:
    """The samples of a file: of JSON, one object a line; of CSV, with a line of names first.

    >>> list(parse_recorded([b"at,series,value", b"7,temp.inlet,21.5"], "file"))
    [RecordedSample(at=7.0, series='temp.inlet', value=21.5, entity='-')]

    Raises:
        HapteraError: a line is neither, or there are too many.
    """
    names: list[str] | None = None
    for number, raw in enumerate(lines, start=1):
        place = f"{where}:{number}"
        if number > SAMPLES_MAX or len(raw) > LINE_BYTES_MAX:
            what = f"more than {SAMPLES_MAX} samples, or {LINE_BYTES_MAX} bytes a line"
            raise LimitError(what, where=place, do="cut the file")
        line = raw.strip()
        if not line:
            continue
        if line.startswith(b"{"):
            yield _of_json(line, place)
        elif names is None:
            names = _names(line, place)
        else:
            yield _of_csv(names, line, place)


def replay(rule: HealthRule, samples: Iterable[RecordedSample]) -> Iterator[Told]:
    """Each change of the rule's verdict, in the order of the samples."""
    tracks: dict[tuple[str, str], Track] = {}
    for one in samples:
        if is_of(rule, one.series):
            key = one.entity, one.series
            track = tracks.setdefault(key, Track(rule, one.series))
            if track.add(Timed(one.at, one.value), one.at):
                yield Told(one.at, one.entity, one.series, track.symptom)


def _of_json(line: bytes, place: str) -> RecordedSample:
    try:
        return msgspec.json.decode(line, type=RecordedSample)
    except (ValueError, RecursionError) as error:
        raise ParseError(str(error), where=place, do=f"write {', '.join(COLUMNS)}") from None


def _names(line: bytes, place: str) -> list[str]:
    names = line.decode(errors="replace").split(",")
    if not set(COLUMNS) <= set(names):
        do = f"write {','.join(COLUMNS)} above, or an object of JSON on each line"
        raise HapteraError("no names of columns", where=place, do=do, code=Code.MISSING)
    return names


def _of_csv(names: list[str], line: bytes, place: str) -> RecordedSample:
    cells = line.decode(errors="replace").split(",")
    try:
        given = dict(zip(names, cells, strict=True))
        at, value = float(given["at"]), float(given["value"])
    except ValueError:
        what = f"{len(cells)} cells, not two numbers"
        raise ParseError(what, where=place, do=f"write {','.join(names)}") from None
    return RecordedSample(at, given["series"], value, given.get("entity") or NAMELESS)
