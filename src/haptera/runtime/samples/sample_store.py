"""The store of measurements: raw for hours, downsampled for weeks, written by a thread."""

import contextlib
import logging
import queue
import sqlite3
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from haptera.model.reading import Series
from haptera.model.samples import SAMPLE_AGE_S_MAX, Point, SampleBatch, downsampled, stepped
from haptera.runtime.identity.private import private_directory
from haptera.runtime.reading_threads import in_reading_thread
from haptera.runtime.samples.chunk_file import ChunkFile, set_aside
from haptera.runtime.samples.chunks import (
    Measured,
    decode_points,
    decode_raw,
    encode_points,
    encode_raw,
)
from haptera.runtime.samples.limits import SampleLimits

# What is measured within so long is written together, once it is over: so much is lost at most
# where the process is killed.
WINDOW_S: Final = 120
# The steps of what is downsampled, and how much of it is written together.
STEP_S: Final = 300
HOUR_S: Final = 3_600
# Windows that wait for the disk; more are dropped and counted.
WINDOWS_MAX: Final = 4
# The measurements of one entity in a window; more are dropped and counted.
MEASURED_MAX: Final = 32_768
# Entities written at once; then the loop has its turn for this long.
TOGETHER: Final = 50
REST_S: Final = 0.02
CLOSE_WITHIN_S: Final = 5.0

_WINDOWS_AN_HOUR: Final = HOUR_S // WINDOW_S

_log = logging.getLogger(__name__)

# The measurements of each entity in a window.
Window = dict[str, list[Measured]]


class SampleStore:
    """Two files in a folder; `wall_s` is the clock of people. Used from one thread, the loop's."""

    def __init__(self, folder: Path, kept: SampleLimits, wall_s: Callable[[], float]) -> None:
        self._folder = private_directory(folder)
        self._kept = kept
        self._wall_s = wall_s
        self.counts: Counter[str] = Counter()
        self._place = self._window()
        self._measured: Window = {}
        # As in the queue: what was measured and may not be in the file yet.
        self._waiting: dict[int, Window] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._writer = _Writer(self._folder, kept, self.counts, self._waiting)

    @property
    def waiting(self) -> int:
        """The number of windows that wait for the disk."""
        return len(self._waiting)

    def add(self, batch: SampleBatch) -> None:
        """Add a batch to the current window, which is written once it is over."""
        if (place := self._window()) != self._place:
            self._hand_over(place)
        names: tuple[str, ...] = tuple(batch.values)
        if len(self._names) >= MEASURED_MAX:
            self._names.clear()
        names = self._names.setdefault(names, names)
        measured = self._measured.setdefault(str(batch.entity), [])
        if len(measured) * len(names) >= MEASURED_MAX:
            self.counts["too many of one entity"] += len(names)
        else:
            measured.append((round(batch.at, 3), names, array("d", batch.values.values())))

    async def read(
        self, entity: str, series: Series, since: float, until: float, step_s: int | None = None
    ) -> list[Point]:
        """The points of a series, those of each step as one; of what is downsampled, of 5 min."""
        windows = [*self._waiting.values(), self._measured]
        memory = [list(found) for one in windows if (found := one.get(entity)) is not None]
        points = await in_reading_thread(self._writer.points, entity, series, since, until, step_s)
        unwritten = [
            (at, values[names.index(series)])
            for measured in memory
            for at, names, values in measured
            if series in names
        ]
        return _told(points, unwritten, since, until, step_s)

    def close(self) -> None:
        """Write the last window, and wait for the writer for a limited time."""
        self._hand_over(self._place)
        self._writer.close()

    def _window(self) -> int:
        return int(self._wall_s() // WINDOW_S)

    def _hand_over(self, place: int) -> None:
        window, self._measured = self._measured, {}
        if window:
            # Under a key that is not taken: a clock may have been set back.
            key = self._place
            while key in self._waiting:
                key += 1
            self._waiting[key] = window
            if not self._writer.submit(key, self._place):
                del self._waiting[key]
                self.counts["the disk is too slow"] += sum(map(_size, window.values()))
        self._place = place


class _Points(msgspec.Struct, frozen=True):
    """The content of the files: downsampled points, and the raw measurements after them."""

    coarse: list[Point]
    raw: list[tuple[float, float]]


class _Writer:
    """The thread that writes; it alone writes to the files, others read them."""

    def __init__(
        self, folder: Path, kept: SampleLimits, counts: Counter[str], waiting: dict[int, Window]
    ) -> None:
        self._kept = kept
        self._counts = counts
        self._waiting = waiting
        self._paths = folder / "raw.db", folder / "downsampled.db"
        self._files: tuple[ChunkFile, ChunkFile] | None = None
        self._said = ""
        self._stopping = threading.Event()
        self._queue: queue.Queue[tuple[int, int] | None] = queue.Queue(WINDOWS_MAX)
        self._thread = threading.Thread(target=self._run, name="samples", daemon=True)
        self._thread.start()

    def submit(self, key: int, place: int) -> bool:
        """Queue the window of this key to be written at its place; False if the queue is full."""
        try:
            self._queue.put_nowait((key, place))
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        self._stopping.set()
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=CLOSE_WITHIN_S)
        self._thread.join(CLOSE_WITHIN_S)

    def points(
        self, entity: str, series: Series, since: float, until: float, step_s: int | None
    ) -> _Points:
        """The points of a series in the files; none from a file that cannot be read."""
        raw_path, coarse_path = self._paths
        try:
            oldest, chunks = _read(raw_path, entity, since, until + SAMPLE_AGE_S_MAX, WINDOW_S)
            raw_from = float("inf") if oldest is None else float(oldest * WINDOW_S)
            fine = step_s is None or step_s < STEP_S
            coarse: list[bytes] = []
            if since < raw_from or not fine:
                coarse = _read(coarse_path, entity, since, until, HOUR_S)[1]
        except sqlite3.Error as error:
            _log.warning("numbers cannot be read: %s", error)
            return _Points([], [])
        raw = [one for chunk in chunks for one in (decode_raw(chunk) or {}).get(series, ())]
        points = [one for chunk in coarse for one in (decode_points(chunk) or {}).get(series, ())]
        return _Points(points, raw)

    def _run(self) -> None:
        self._try(self._prune)
        while (taken := self._queue.get()) is not None:
            key, place = taken
            window = self._waiting[key]
            if not self._try(partial(self._write, place, window)):
                self._counts["not written"] += sum(map(_size, window.values()))
            del self._waiting[key]
            self._try(self._downsample)
            self._try(self._prune)
        if self._files is not None:
            for file in self._files:
                file.close()

    def _try(self, work: Callable[[], None]) -> bool:
        """True if the work succeeded; log an obstacle once, and set a broken file aside."""
        try:
            if self._files is None:
                raw, coarse = self._paths
                self._files = self._opened(raw), self._opened(coarse)
            work()
        except (sqlite3.OperationalError, OSError) as error:  # a full disk, say
            self._say(f"numbers are not kept: {error}")
            return False
        except sqlite3.DatabaseError as error:
            self._say(f"numbers are kept anew: {error}")
            self._begin_anew()
            return False
        self._say("")
        return True

    def _opened(self, path: Path) -> ChunkFile:
        half = self._kept.bytes_max // 2
        try:
            return ChunkFile(path, half)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            self._set_aside(path, str(error))
            return ChunkFile(path, half)

    def _begin_anew(self) -> None:
        for file in self._files or ():
            file.close()
        self._files = None
        for path in self._paths:
            if not _is_sound(path):
                with contextlib.suppress(OSError):
                    self._set_aside(path, "it is damaged")

    def _set_aside(self, path: Path, why: str) -> None:
        _log.error("%s is set aside as %s: %s", path, set_aside(path).name, why)
        self._counts["files set aside"] += 1

    def _say(self, text: str) -> None:
        if text and text != self._said:
            _log.error("%s", text)
        self._said = text

    def _write(self, place: int, window: Window) -> None:
        raw, _ = self._both()
        names = sorted(window)
        for begin in range(0, len(names), TOGETHER):
            some = names[begin : begin + TOGETHER]
            raw.put(place, [(name, encode_raw(window[name])) for name in some])
            self._stopping.wait(REST_S)

    def _downsample(self) -> None:
        """Downsample each hour that is over, the oldest first, all of its entities or none."""
        raw, coarse = self._both()
        last, newest = coarse.last(), raw.last()
        hour = -1 if last is None else last
        while (place := raw.next_from((hour + 1) * _WINDOWS_AN_HOUR)) is not None:
            # Late measurements are in the window after their hour.
            hour = max(hour + 1, (place - 1) // _WINDOWS_AN_HOUR)
            end = (hour + 1) * _WINDOWS_AN_HOUR
            if newest is None or newest <= end:
                return
            coarse.put(hour, [*self._downsampled(raw, hour, end)])

    def _downsampled(self, raw: ChunkFile, hour: int, end: int) -> Iterable[tuple[str, bytes]]:
        since, until = hour * HOUR_S, (hour + 1) * HOUR_S
        places = range(end - _WINDOWS_AN_HOUR, end + 1)
        for count, name in enumerate(raw.entities(places[0], places[-1] + 1), 1):
            series: dict[str, list[tuple[float, float]]] = {}
            for chunk in raw.get(name, places):
                for one, measured in (decode_raw(chunk) or {}).items():
                    series.setdefault(one, []).extend(
                        each for each in measured if since <= each[0] < until
                    )
            points = {one: stepped(some, STEP_S) for one, some in series.items() if some}
            if points:
                yield name, encode_points(points)
            if count % TOGETHER == 0:
                self._stopping.wait(REST_S)

    def _prune(self) -> None:
        raw, coarse = self._both()
        if (newest := raw.last()) is not None:
            raw.drop_before(newest - self._kept.raw_hours * _WINDOWS_AN_HOUR)
        if (newest := coarse.last()) is not None:
            coarse.drop_before(newest - self._kept.days * 24)
        raw.make_room()
        coarse.make_room()

    def _both(self) -> tuple[ChunkFile, ChunkFile]:
        assert self._files is not None
        return self._files


def _told(
    found: _Points,
    unwritten: Iterable[tuple[float, float]],
    since: float,
    until: float,
    step_s: int | None,
) -> list[Point]:
    """The points of a time, of what was downsampled and what was not."""
    end = max((one.at + STEP_S for one in found.coarse), default=float("-inf"))
    fine = step_s is None or step_s < STEP_S
    by_time = {**dict(found.raw), **dict(unwritten)}
    first = min((at for at, _ in found.raw), default=float("inf"))
    if fine:  # as it came, where that is known
        coarse = [one for one in found.coarse if one.at + STEP_S <= first]
        raw = by_time
    else:
        coarse = found.coarse
        raw = {at: value for at, value in by_time.items() if at >= end}
    measured = [_point(at, value) for at, value in sorted(raw.items())]
    points = [one for one in (*coarse, *measured) if since <= one.at < until]
    return points if step_s is None else downsampled(points, step_s)


def _read(
    path: Path, entity: str, since: float, until: float, width_s: int
) -> tuple[int | None, list[bytes]]:
    if not path.exists():
        return None, []
    return ChunkFile.read_only(path, entity, int(since // width_s), int(until // width_s))


def _is_sound(path: Path) -> bool:
    """True if SQLite's quick check of the whole file finds no fault."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as file:
            return bool(file.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False


def _point(at: float, value: float) -> Point:
    return Point(at, value, value, value, 1)


def _size(measured: list[Measured]) -> int:
    return sum(len(values) for _, _, values in measured)
