"""Run the tests by stages: `python -m tests.gate check | test | changed | nightly`.

`check` is quick; `test` has all that needs neither minutes nor root; `changed` has of the rest what
the change touches, what is always tried, and what has its turn; `nightly` is everything, with seeds
of the day. Each run prints how long its stages and its slowest tests took, and keeps that below
build/gate/; `record` takes it over into durations.tsv, by which tests are chosen, and into
CONTRIBUTING.md.
"""

import argparse
import datetime
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from tests.gate import stages
from tests.gate.plugin import Measured, measured
from tests.gate.recording import StageTook, minutes, record, write_stages
from tests.gate.selection import Choice
from tests.gate.stages import ROOT, Stage, say

OUT: Final = ROOT / "build" / "gate"
# A machine that stalls for seconds fails a test now and then; more than so many are no chance.
SECOND_TRIES_MAX: Final = 3
SLOWEST: Final = 50
# pytest's own.
PASSED, FAILED, NONE_COLLECTED = 0, 1, 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gate", description=__doc__)
    parser.add_argument("what", choices=["check", "test", "changed", "nightly", "record"])
    parser.add_argument(
        "--base",
        default=os.environ.get("GATE_BASE"),
        help="the commit that had landed before (or $GATE_BASE); else the newest four hours older",
    )
    parser.add_argument("--turn", type=int, help="whose turn it is; else the number of commits")
    given = parser.parse_args()
    match given.what:
        case "record":
            record(OUT)
            return PASSED
        case "check":
            chosen = stages.check()
        case "test":
            chosen = stages.test()
        case "changed":
            chosen = stages.changed(given.base, given.turn)
        case _:
            chosen = stages.nightly(datetime.datetime.now(datetime.UTC).date())
    return Run(given.what, chosen).to_its_end()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a stage ended."""

    stage: Stage
    seconds: float
    status: int

    @property
    def is_well(self) -> bool:
        # A turn may hold none of a stage's tests.
        none = self.stage.choice is not None and self.status == NONE_COLLECTED
        return self.status == PASSED or none


class Run:
    """Runs stages one after the other; beside these, at a low priority, those that only compute."""

    def __init__(self, what: str, chosen: Sequence[Stage], out: Path = OUT) -> None:
        self._what = what
        self._stages = chosen
        self._out = out / what
        self._out.mkdir(parents=True, exist_ok=True)
        for old in self._out.iterdir():
            old.unlink()
        self._ended: list[Ended] = []
        self._aside: subprocess.Popen[bytes] | None = None

    def to_its_end(self) -> int:
        began = time.monotonic()
        aside = threading.Thread(target=self._run_aside, daemon=True)
        aside.start()
        try:
            for stage in self._stages:
                if not stage.beside:
                    self._run(stage)
            aside.join()
        finally:
            if self._aside is not None and self._aside.poll() is None:
                os.killpg(self._aside.pid, signal.SIGTERM)
        sys.stdout.write((self._out / "beside.log").read_text("utf-8", "replace"))
        wrong = self._is_wrong_alone_too()
        self._tell(time.monotonic() - began)
        return FAILED if wrong else PASSED

    def _run(self, stage: Stage) -> Ended:
        command = command_of(stage, self._out)
        say(f"{stage.name}: {shlex.join(command)[:240]}")
        began = time.monotonic()
        status = subprocess.run(command, cwd=ROOT, env=environment_of(stage)).returncode
        self._ended.append(Ended(stage, time.monotonic() - began, status))
        return self._ended[-1]

    def _run_aside(self) -> None:
        """One after the other, each in a group of its own, which can be ended whole."""
        with (self._out / "beside.log").open("wb") as log:
            for stage in self._stages:
                if not stage.beside:
                    continue
                log.write(f"gate: beside the others: {stage.name}\n".encode())
                log.flush()
                began = time.monotonic()
                self._aside = subprocess.Popen(
                    ["nice", "-n", "10", *command_of(stage, self._out)],
                    cwd=ROOT,
                    env=environment_of(stage),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                status = self._aside.wait()
                self._ended.append(Ended(stage, time.monotonic() - began, status))

    def _is_wrong_alone_too(self) -> bool:
        """Whether anything failed that does not pass alone, now that the machine is idle.

        What only computes fails by no chance.
        """
        wrong = [one for one in self._ended if not one.is_well]
        failed = [
            test.name
            for one in wrong
            for test in self._tests_of(one)
            if one.stage.holding and one.status == FAILED and test.outcome == "failed"
        ]
        if any(not one.stage.holding or one.status != FAILED for one in wrong):
            return True
        if not 0 < len(failed) <= SECOND_TRIES_MAX:
            return bool(wrong)
        again = Stage(
            "second tries",
            marks=" or ".join(f"({one.stage.marks})" for one in wrong),
            workers="0",
            choice=Choice(tuple(failed)),
            options=tuple(sorted({name.partition("::")[0] for name in failed})),
        )
        if self._run(again).status != PASSED:
            return True
        say("unsteady, failed among others and passed alone: a defect to mend")
        sys.stdout.write("".join(f"{name}\n" for name in failed))
        return False

    def _tests_of(self, ended: Ended) -> list[Measured]:
        return measured(record_of(ended.stage, self._out))

    def _tell(self, seconds: float) -> None:
        tests = sorted((test for one in self._ended for test in self._tests_of(one)), key=_slowest)
        slowest = "".join(f"{one.seconds:8.1f} s  {one.name}\n" for one in tests[:SLOWEST])
        (self._out / "slowest.txt").write_text(slowest, "utf-8")
        say(f"the slowest tests, also in {self._out / 'slowest.txt'}")
        sys.stdout.write(slowest)
        for one in self._ended:
            beside = ", beside" if one.stage.beside else ""
            said = "passed" if one.is_well else f"ended with {one.status}"
            say(f"{one.stage.name:20} {minutes(one.seconds)}  {said}{beside}")
        say(f"{self._what:20} {minutes(seconds)}")
        took = [StageTook(one.stage.name, round(one.seconds)) for one in self._ended]
        write_stages(self._out, [*took, StageTook("whole", round(seconds))])


def _slowest(test: Measured) -> float:
    return -test.seconds


def command_of(stage: Stage, out: Path) -> list[str]:
    """The words of the stage's process; its choice is written where they say."""
    if stage.command:
        return list(stage.command)
    words = [sys.executable, "-m", "pytest", "-p", "tests.gate.plugin", "-q", "-m", stage.marks]
    words += ["-n", stage.workers, *(() if stage.workers == "0" else ("--dist", stage.by))]
    words += ["--record", str(record_of(stage, out)), *stage.options]
    if stage.choice is not None:
        file = out / f"{stage.name}.choice.json"
        file.write_bytes(msgspec.json.encode(stage.choice))
        words += ["--choice", str(file)]
    return words + files_holding(stage.holding)


def files_holding(marks: Iterable[str]) -> list[str]:
    """The files of tests in which one of these marks stands."""
    asked = [f"mark.{mark}" for mark in marks]
    return sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py" if asked else "")
        if any(one in path.read_text("utf-8") for one in asked)
    )


def environment_of(stage: Stage) -> dict[str, str]:
    return {**os.environ, **stage.environment}


def record_of(stage: Stage, out: Path) -> Path:
    return out / f"{stage.name}.jsonl"


if __name__ == "__main__":
    sys.exit(main())
