"""The stages of each run: which tests, by how many workers, beside what."""

import datetime
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import run
from typing import Final

import msgspec

from tests.gate.selection import Areas, Choice, only_pages, touched_areas

ROOT: Final = Path(__file__).parents[2]
AREAS: Final = ROOT / "tests" / "areas.toml"
BIN: Final = Path(sys.executable).parent

# What opens sockets or starts processes, and ends in seconds.
SOCKETS: Final = "net and not campaign and not long"
MUTANTS: Final = "tests/mutants/test_mutants.py"
# Bugs planted in files that changed, at most so many: each takes some 20 s.
MUTANTS_MAX: Final = 12
# Of the real parts of all areas that are touched, tests of so many seconds.
TOUCHED_S: Final = 240.0
# All real parts have their turn in so many commits in a row, and all long seeds.
TURNS, TURNS_OF_SEEDS = 6, 12
HOURS, HOURS_AT_NIGHT = "100", "500"
# Commits that land together are made within some hours: what is older had landed before.
LANDED_BEFORE: Final = datetime.timedelta(hours=4)


@dataclass(frozen=True, slots=True)
class Stage:
    """A command, or pytest for all that has these marks.

    `holding` are marks that stand in the files that pytest reads: to read all takes each worker
    20 s. A stage that is `beside` runs at a low priority beside those that wait for processes.
    """

    name: str
    command: tuple[str, ...] = ()
    marks: str = ""
    holding: tuple[str, ...] = ()
    workers: str = "auto"
    by: str = "worksteal"
    choice: Choice | None = None
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    beside: bool = False


TOOLS: Final = (
    Stage("types", (f"{BIN}/mypy",), beside=True),
    Stage("contracts", (f"{BIN}/lint-imports",), beside=True),
)


def check() -> list[Stage]:
    quick = "not slow and not net and not campaign and not long"
    return [
        *TOOLS,
        Stage("quick", marks=quick),
        Stage("quick with sockets", marks=f"{SOCKETS} and not slow", holding=("net",), workers="4"),
    ]


def test() -> list[Stage]:
    return [
        *TOOLS,
        Stage("computing", marks="not net and not campaign and not long"),
        Stage("sockets", marks=SOCKETS, holding=("net",), workers="3"),
    ]


def changed(base: str | None, turn: int | None) -> list[Stage]:
    """The long tests and real parts that a change is held to, besides those of `test`."""
    areas = msgspec.convert(tomllib.loads(AREAS.read_text("utf-8")), Areas)
    paths = git("diff", "--name-only", base or landed(), "HEAD").splitlines()
    number = int(git("rev-list", "--count", "HEAD")) if turn is None else turn
    names = touched_areas(areas, paths)
    touched = tuple(one for name in names for one in areas.area[name].tests)
    always = tuple(one for area in areas.area.values() for one in area.always)
    say(f"{len(paths)} files changed, turn {number}; touched: {', '.join(names) or 'no area'}")
    if only_pages(areas, paths):
        always, touched = (), ()
    real = Choice(always, touched, TOUCHED_S, number, TURNS, areas.apart)
    seeds = Choice(mutants(paths), turn=number, turns=TURNS_OF_SEEDS, apart=areas.apart)
    return [
        Stage(
            "seeds and mutants",
            marks="campaign and not net",
            holding=("campaign",),
            workers="2",
            choice=seeds,
            beside=True,
        ),
        Stage("hours", hours(HOURS), beside=True),
        Stage(
            "long", marks="long and not campaign", holding=("long",), workers="4", by="worksteal"
        ),
        Stage(
            "real parts",
            marks="campaign and net",
            holding=("campaign",),
            workers="3",
            by="loadfile",
            choice=real,
        ),
    ]


def nightly(day: datetime.date) -> list[Stage]:
    """Everything, with seeds of the day; what they find is written down, and tried always."""
    seed = str(day.toordinal())
    wide = {"HYPOTHESIS_PROFILE": "wide"}
    kills = {"HAPTERA_KILL_SEED": seed, "HAPTERA_KILLS": "200", "HAPTERA_QUEUE_KILLS": "500"}
    return [
        Stage(
            "computing, widely",
            marks="(campaign or hypothesis or wide) and not net",
            options=(f"--hypothesis-seed={seed}",),
            environment=wide,
            beside=True,
        ),
        Stage("benchmarks", (sys.executable, "-m", "benchmarks.short"), beside=True),
        Stage("long", marks="long and not campaign", holding=("long",), workers="4"),
        # By files, so that never two demos, which fill the machine, run at once.
        Stage(
            "real parts",
            marks="campaign and net",
            holding=("campaign",),
            workers="2",
            by="loadfile",
            environment=kills,
        ),
        Stage("hours", hours(HOURS_AT_NIGHT, "--from", seed)),
        Stage("a fresh machine", (str(ROOT / "tools" / "fresh"),)),
    ]


def mutants(paths: Iterable[str]) -> tuple[str, ...]:
    """The bugs that are planted in these files, those of the longest patches first."""
    found = []
    for patch in (ROOT / MUTANTS).parent.glob("*.patch"):
        text = patch.read_text("utf-8")
        if any(f"+++ b/{path}\n" in text for path in paths):
            found.append((-len(text), f"{MUTANTS}::test_a_planted_bug_is_found[{patch.stem}]"))
    return tuple(name for _, name in sorted(found)[:MUTANTS_MAX])


def hours(how_many: str, *more: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.world.hunt", "--hours", how_many, *more)


def landed() -> str:
    """The newest commit older than all that can land together with this one."""
    newest = datetime.datetime.fromisoformat(git("show", "-s", "--format=%cI", "HEAD"))
    before = git("rev-list", "-1", f"--before={(newest - LANDED_BEFORE).isoformat()}", "HEAD")
    return before or git("rev-list", "--max-parents=0", "HEAD").splitlines()[0]


def git(*words: str) -> str:
    ran = run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def say(text: str) -> None:
    sys.stdout.write(f"gate: {text}\n")
    sys.stdout.flush()
