"""The power goes at any moment of writing: what was acknowledged is there, whole, and chained."""

import contextlib
import itertools
from pathlib import Path
from random import Random

import msgspec
import pytest

from haptera.model.changes import Author, Declare, SetDesired, Stored, Undeclare
from haptera.model.entity import node_id
from haptera.runtime.store.audit_chain import verify
from tests.runtime.test_store import opened

apsw = pytest.importorskip("apsw", reason="apsw is not installed: make setup-dev")
from tests.runtime.power_loss import PowerLossDisk, PowerLossVfs, PowerLostError  # noqa: E402

POINTS = 330
WRITES = 60
NAMES = itertools.count(1)
EVE = Author("user:eve", "why not")


class Course:
    """A file as it was at first, what was written to it since, and how it was after each."""

    def __init__(self, folder: Path) -> None:
        path = folder / "state.db"
        with opened(path):
            pass
        self.first = path.read_bytes()
        self.batches: list[bytes] = []
        rng = Random(7)
        with opened(path, shipped=self.batches.append) as one:
            self.states = [one.store.load()]
            for number in range(WRITES):
                node = node_id(f"n{rng.randrange(8)}")
                rack = {"rack": "x" * rng.randrange(800)}
                changes = [Declare(node, rack, "site"), SetDesired(node, "port", number, "site")]
                one.write(*(changes if rng.random() < 0.9 else [Undeclare(node)]), author=EVE)
                self.states.append(one.store.load())


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("course"))


def write_until(course: Course, folder: Path, disk: PowerLossDisk, synchronous: str) -> int:
    """Write as a store does, until the power goes; how many commits were acknowledged."""
    path = folder / "state.db"
    path.write_bytes(course.first)
    disk.synced[str(path)] = bytearray(course.first)
    vfs = PowerLossVfs(name := f"power-{next(NAMES)}", disk)
    acknowledged = 0
    connection = apsw.Connection(str(path), vfs=name)
    try:
        # Else SQLite maps memory that the model does not see.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 25")
        for batch in course.batches:
            connection.execute("BEGIN IMMEDIATE")
            for sql, parameters in msgspec.msgpack.decode(batch):
                connection.execute(sql, parameters).fetchall()
            connection.execute("COMMIT")
            acknowledged += 1
    except (PowerLostError, apsw.Error):
        assert disk.goes_at is not None
    disk.goes_at = 0  # closing writes nothing, either
    with contextlib.suppress(PowerLostError, apsw.Error):
        connection.close(True)
    vfs.unregister()
    return acknowledged


def after(folder: Path) -> Stored:
    """What the store finds when the power is back."""
    with opened(folder / "state.db") as one:
        return one.store.load()


def found_at(course: Course, folder: Path, point: int, synchronous: str) -> tuple[int, int]:
    """How many commits were acknowledged, and how many are there."""
    (running := folder / f"{point}" / "running").mkdir(parents=True)
    (later := folder / f"{point}" / "later").mkdir()
    disk = PowerLossDisk(goes_at=point)
    acknowledged = write_until(course, running, disk, synchronous)
    disk.lose(Random(point), later)
    there = course.states.index(after(later))
    assert verify(later / "state.db").findings == ()
    return acknowledged, there


def operations(course: Course, folder: Path) -> int:
    """How many writes, truncations and syncs there are until the end."""
    disk = PowerLossDisk()
    assert write_until(course, folder, disk, "FULL") == len(course.batches) == WRITES
    assert disk.happened["sync"] > WRITES, disk.happened
    return disk.happened.total()


@pytest.mark.campaign
@pytest.mark.slow
def test_nothing_that_was_acknowledged_is_lost_wherever_the_power_goes(
    course: Course, tmp_path: Path
) -> None:
    last = operations(course, tmp_path)
    points = sorted(Random(1).sample(range(2, last), min(POINTS, last - 2)))
    assert len(points) >= 300, last
    for point in points:
        acknowledged, there = found_at(course, tmp_path, point, "FULL")
        assert acknowledged <= there <= acknowledged + 1, f"the power went at {point}"


@pytest.mark.campaign
@pytest.mark.slow
def test_the_disk_finds_a_store_that_acknowledges_what_is_not_synced(
    course: Course, tmp_path: Path
) -> None:
    found = [found_at(course, tmp_path, point, "NORMAL") for point in range(20, 200, 6)]
    assert any(there < acknowledged for acknowledged, there in found)
