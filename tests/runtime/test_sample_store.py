"""Numbers on disk: what is read is what a plain list has, within bounds, whatever happens."""

import asyncio
import math
import os
import signal
import sqlite3
import subprocess
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.model.entity import node_id
from haptera.model.reading import Series
from haptera.model.samples import Point, SampleBatch, downsampled
from haptera.runtime.samples.chunk_file import BROKEN, PAGE_BYTES
from haptera.runtime.samples.chunks import decode_points, decode_raw, encode_points, encode_raw
from haptera.runtime.samples.sample_store import HOUR_S, STEP_S, WINDOW_S, SampleLimits, SampleStore

INLET, FAN = Series("temp.inlet"), Series("fan[1]")
# The beginning of an hour.
BEGAN = 480_000 * HOUR_S
NODES = ("n1", "n2")
KEPT = SampleLimits()


@dataclass
class Shelf:
    """A store that is closed and opened again, and what a plain list has of it."""

    folder: Path
    kept: SampleLimits = KEPT
    now: float = BEGAN
    plain: dict[tuple[str, Series], list[Point]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = SampleStore(self.folder, self.kept, lambda: self.now)

    def add(self, node: str, values: dict[Series, float], age_s: float = 0.0) -> None:
        at = round(self.now - age_s, 3)
        if any(at == one.at for one in self.plain.get((node, next(iter(values))), ())):
            return  # two numbers of one moment: either may be told
        self.store.add(SampleBatch(node_id(node), at, values))
        while self.store.waiting:  # the disk of a test is not to be too slow
            os.sched_yield()
        for series, value in values.items():
            one = Point(at, value, value, value, 1)
            self.plain.setdefault((node, series), []).append(one)

    def restart(self) -> None:
        self.store.close()
        self.store = SampleStore(self.folder, self.kept, lambda: self.now)

    def read(
        self, node: str, since: float, until: float, step_s: int | None, series: Series = INLET
    ) -> list[Point]:
        return asyncio.run(self.store.read(str(node_id(node)), series, since, until, step_s))

    def expected(
        self, node: str, since: float, until: float, step_s: int | None, series: Series = INLET
    ) -> list[Point]:
        some = {
            one.at: one for one in self.plain.get((node, series), ()) if since <= one.at < until
        }
        points = [some[at] for at in sorted(some)]
        return points if step_s is None else downsampled(points, step_s)


@contextmanager
def shelf(folder: Path, kept: SampleLimits = KEPT) -> Iterator[Shelf]:
    one = Shelf(folder, kept)
    try:
        yield one
    finally:
        one.store.close()


values = st.floats(-1e6, 1e6)
steps = st.one_of(
    st.tuples(st.just("measure"), st.sampled_from(NODES), values, st.floats(0, 59)),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 10.0, 119.0, 600.0, 1800.0])),
    st.tuples(st.just("restart")),
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(steps, min_size=5, max_size=60),
    st.sampled_from([None, 60, STEP_S, 900]),
    st.integers(0, 4 * 12),
)
def test_what_is_read_is_what_a_plain_list_has(
    tmp_path_factory: pytest.TempPathFactory,
    script: list[tuple[str, ...]],
    step_s: int | None,
    begin: int,
) -> None:
    with shelf(tmp_path_factory.mktemp("samples")) as one:
        for what, *terms in script:
            match what:
                case "measure":
                    node, value, age_s = terms
                    both = {INLET: float(value), FAN: -float(value)}
                    one.add(str(node), both if float(value) > 0 else {INLET: float(value)}, age_s)
                case "wait":
                    one.now += float(terms[0])
                case "restart":
                    one.restart()
        since, until = BEGAN - HOUR_S + begin * STEP_S, one.now + HOUR_S
        for node in NODES:
            for series in (INLET, FAN):
                read = one.read(node, since, until, step_s, series)
                same(read, one.expected(node, since, until, step_s, series))


def same(read: list[Point], expected: list[Point]) -> None:
    """The same points; a mean of means is not exact in its last digits."""

    def rows(points: list[Point]) -> list[tuple[float, float, float, int]]:
        return [(one.at, one.low, one.high, one.count) for one in points]

    assert rows(read) == rows(expected)
    for one, other in zip(read, expected, strict=True):
        assert math.isclose(one.mean, other.mean, rel_tol=1e-9, abs_tol=1e-6)


def measure_for(one: Shelf, hours: float, every_s: float = 60.0) -> None:
    for number in range(int(hours * HOUR_S / every_s)):
        one.add("n1", {INLET: 20.0 + number % 7})
        one.now += every_s


def test_after_hours_the_points_are_downsampled(tmp_path: Path) -> None:
    with shelf(tmp_path, SampleLimits(raw_hours=2)) as one:
        measure_for(one, 6)
        one.restart()
        read = one.read("n1", BEGAN, BEGAN + HOUR_S, None)
        same(read, one.expected("n1", BEGAN, BEGAN + HOUR_S, STEP_S))

        late = one.now - HOUR_S
        assert one.read("n1", late, one.now, None) == one.expected("n1", late, one.now, None)


def test_what_is_older_than_all_that_is_kept_is_gone(tmp_path: Path) -> None:
    with shelf(tmp_path, SampleLimits(raw_hours=1, days=1)) as one:
        measure_for(one, 30, every_s=STEP_S)
        one.restart()
        one.restart()

        assert one.read("n1", BEGAN, BEGAN + HOUR_S, STEP_S) == []
        assert len(one.read("n1", one.now - 20 * HOUR_S, one.now, STEP_S)) == 20 * 12


def test_no_file_outgrows_its_bound_and_the_oldest_goes_first(tmp_path: Path) -> None:
    bound = 2 * 64 * PAGE_BYTES
    with shelf(tmp_path, SampleLimits(bytes_max=bound)) as one:
        many = [Series(f"s[{number}]") for number in range(200)]
        for number in range(200):
            one.add("n1", {name: math.sin(number * place) for place, name in enumerate(many)})
            one.now += WINDOW_S / 4
            if number % 4 == 3:
                one.restart()

        sizes = [path.stat().st_size for path in tmp_path.glob("*.db")]
        assert max(sizes) <= bound // 2
        assert one.store.counts == {}
        # Of what is gone there is what was downsampled.
        all_of_it = one.read("n1", 0, one.now + 1, None, many[1])
        read = [point for point in all_of_it if point.count == 1]
        expected = one.expected("n1", 0, one.now + 1, None, many[1])
        assert 0 < len(read) < len(all_of_it) < len(expected)
        assert read == expected[-len(read) :]


def test_a_file_that_is_no_database_is_set_aside(tmp_path: Path) -> None:
    with shelf(tmp_path) as one:
        one.add("n1", {INLET: 21.0})
    (tmp_path / "raw.db").write_bytes(b"what is this" * 1_000)

    with shelf(tmp_path) as one:
        one.restart()
        one.add("n1", {INLET: 22.0})
        one.restart()
        assert [point.mean for point in one.read("n1", 0, one.now + 1, None)] == [22.0]
    assert (tmp_path / f"raw.db{BROKEN}").read_bytes().startswith(b"what is this")


def test_a_damaged_page_costs_the_file_and_nothing_else(tmp_path: Path) -> None:
    with shelf(tmp_path) as one:
        measure_for(one, 3)
    content = bytearray((tmp_path / "raw.db").read_bytes())
    content[PAGE_BYTES:] = os.urandom(len(content) - PAGE_BYTES)
    (tmp_path / "raw.db").write_bytes(content)

    with shelf(tmp_path) as one:
        one.now = BEGAN + 4 * HOUR_S
        for _ in range(3):
            one.add("n1", {INLET: 22.0})
            one.restart()
        assert [point.mean for point in one.read("n1", one.now - 1, one.now + 1, None)][-1:] == [
            22.0
        ]
    assert (tmp_path / f"raw.db{BROKEN}").exists()


def test_a_file_of_a_later_form_is_kept_aside(tmp_path: Path) -> None:
    with shelf(tmp_path) as one:
        one.add("n1", {INLET: 21.0})
    with sqlite3.connect(tmp_path / "raw.db") as file:
        file.execute("PRAGMA user_version = 99")
    file.close()

    with shelf(tmp_path) as one:
        one.restart()
        one.add("n1", {INLET: 22.0})
        one.restart()
        assert [point.mean for point in one.read("n1", 0, one.now + 1, None)] == [22.0]


KILLED = """
import sys
from pathlib import Path
from haptera.model.entity import node_id
from haptera.model.samples import SampleBatch
from haptera.runtime.samples.limits import SampleLimits
from haptera.runtime.samples.sample_store import SampleStore, WINDOW_S

now = [float(sys.argv[2])]
store = SampleStore(Path(sys.argv[1]), SampleLimits(), lambda: now[0])
number = 0
while True:
    for node in range(100):
        store.add(SampleBatch(node_id(f"n{node}"), now[0], {"temp.inlet": float(number)}))
    number += 1
    now[0] += WINDOW_S
    while store.waiting:
        pass
    print(number, flush=True)
"""


@pytest.mark.net
def test_what_was_written_survives_a_kill_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), str(BEGAN)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(5):
        told = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    with shelf(tmp_path) as one:
        one.now = BEGAN + 100 * WINDOW_S
        for node in ("n0", "n99"):
            read = [point.mean for point in one.read(node, 0, one.now, None)]
            assert read[: told - 1] == [float(number) for number in range(told - 1)]
            assert read == [float(number) for number in range(len(read))]
        one.add("n1", {INLET: 99.0})
        one.restart()
        assert one.store.counts == {}


def test_a_full_disk_loses_numbers_until_there_is_room(
    tmp_path: Path, small_disk: "SmallDisk"
) -> None:
    with shelf(small_disk.folder / "samples") as one:
        one.restart()
        small_disk.fill()
        noise = [Series(f"s[{number}]") for number in range(200)]
        for number in range(40):
            one.now += 1
            one.add("n1", {name: math.sin(number * place) for place, name in enumerate(noise)})
        lost = one.store.counts
        one.restart()
        assert lost["not written"] == 40 * 200

        small_disk.empty()
        one.now += 10 * WINDOW_S
        one.add("n1", {INLET: 22.0})
        one.restart()
        assert [point.mean for point in one.read("n1", 0, one.now + 1, None)] == [22.0]


@dataclass
class SmallDisk:
    folder: Path

    def fill(self) -> None:
        with (self.folder / "full").open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 512):
                    pass
            except OSError:
                pass

    def empty(self) -> None:
        (self.folder / "full").unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)], capture_output=True
    )
    if done.returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_the_window_of_a_clock_that_was_set_back_is_joined(tmp_path: Path) -> None:
    with shelf(tmp_path) as one:
        one.add("n1", {INLET: 1.0})
        one.now += WINDOW_S
        one.add("n1", {INLET: 2.0})
        one.now -= WINDOW_S - 1
        one.add("n1", {INLET: 3.0})
        one.restart()

        read = [point.mean for point in one.read("n1", 0, one.now + HOUR_S, None)]
        assert read == [1.0, 3.0, 2.0]


@given(st.lists(st.tuples(st.floats(0, 4e9), st.lists(st.floats(allow_nan=False), max_size=5))))
def test_a_chunk_holds_all_that_was_measured(
    measured: list[tuple[float, list[float]]],
) -> None:
    some = [
        (round(at, 3), tuple("abcde"[: len(values)]), array("d", values)) for at, values in measured
    ]
    found = decode_raw(encode_raw(some) + encode_raw([]))
    assert found is not None
    for name in "abcde":
        expected = sorted(
            (at, values[names.index(name)]) for at, names, values in some if name in names
        )
        assert sorted(found.get(name, [])) == expected


@given(st.lists(st.tuples(st.integers(0, 1 << 31), values, st.integers(1, 99)), max_size=9))
def test_a_chunk_holds_all_points(told: list[tuple[int, float, int]]) -> None:
    points = [Point(float(at), value, value + 1, value + 2, n) for at, value, n in told]

    assert decode_points(encode_points({"a": points, "b": []})) == {"a": points, "b": []}


@given(st.binary(max_size=200))
def test_what_is_no_chunk_is_read_as_none(content: bytes) -> None:
    for read in (decode_raw(content), decode_points(content)):
        assert read is None or content == b""
