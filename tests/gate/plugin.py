"""For pytest (`-p tests.gate.plugin`): keeps the tests chosen, and records how long each took."""

import datetime
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from tests.gate.selection import Choice, chosen

HERE = Path(__file__).parent
DURATIONS = HERE / "durations.tsv"
UNSTEADY = HERE / "unsteady.tsv"


class Measured(msgspec.Struct, frozen=True):
    """A test that has ended: with its fixtures it took so many seconds."""

    name: str
    seconds: float
    outcome: str


class Excused(msgspec.Struct, frozen=True):
    """A test that fails now and then for a known cause, and the day by which that is mended."""

    name: str
    cause: str
    until: datetime.date


def durations(file: Path = DURATIONS) -> dict[str, float]:
    """The seconds that tests took where they were last recorded, by name."""
    rows = [line.rsplit("\t", 1) for line in file.read_text("utf-8").splitlines()]
    return {name: float(seconds) for name, seconds in rows}


def excused(file: Path = UNSTEADY) -> list[Excused]:
    """The rows of `unsteady.tsv`: test, cause and day, separated by tabs; `#` begins a remark."""
    lines = [line for line in file.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [
        Excused(name, cause, datetime.date.fromisoformat(day))
        for name, cause, day in (line.split("\t") for line in lines)
    ]


def measured(file: Path) -> list[Measured]:
    """All that a run recorded; nothing where it never began."""
    if not file.exists():
        return []
    decoder = msgspec.json.Decoder(Measured)
    return [decoder.decode(line) for line in file.read_bytes().splitlines()]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gate")
    group.addoption("--choice", type=Path, help="keep what this file chooses (a Choice as JSON)")
    group.addoption("--excused", action="store_true", help="run what unsteady.tsv names, too")
    group.addoption("--record", type=Path, help="append a line for each test that ended")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = {item.nodeid for item in items}
    if (file := config.getoption("--choice")) is not None:
        choice = msgspec.json.decode(file.read_bytes(), type=Choice)
        kept = chosen([item.nodeid for item in items], choice, durations())
    if not config.getoption("--excused"):
        kept -= {one.name for one in excused()}
    left_out = [item for item in items if item.nodeid not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid in kept]


class Recorder:
    """Writes a line when a test has ended, so that a run that is killed leaves what it had."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: dict[str, float] = defaultdict(float)
        self._outcome: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        self._seconds[name] += report.duration
        if self._outcome.get(name) != "failed":
            self._outcome[name] = report.outcome
        if report.when == "teardown":
            one = Measured(name, round(self._seconds.pop(name), 2), self._outcome.pop(name))
            with self._file.open("ab") as file:
                file.write(msgspec.json.encode(one) + b"\n")


def pytest_configure(config: pytest.Config) -> None:
    # A worker of xdist hands its reports to the process that has the workers.
    if (file := config.getoption("--record")) is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(file))
