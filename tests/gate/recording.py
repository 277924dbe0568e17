"""How long tests and stages took, kept for the next choice and for people."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tests.gate.plugin import DURATIONS, durations, measured
from tests.gate.stages import ROOT

CONTRIBUTING: Final = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- durations: made by `record` -->\n", "<!-- end of durations -->\n"
# What takes less makes no difference to a choice.
RECORDED_FROM_S: Final = 1.0
RUNS: Final = ("check", "test", "changed", "nightly")


class StageTook(msgspec.Struct, frozen=True):
    """A stage, and how many seconds it took in a run."""

    name: str
    seconds: int


def write_stages(run: Path, took: Sequence[StageTook]) -> None:
    (run / "stages.json").write_bytes(msgspec.json.encode(took))


def record(out: Path) -> None:
    """Keep what runs measured: of tests in durations.tsv, of stages in CONTRIBUTING.md."""
    known = durations()
    for file in sorted(out.rglob("*.jsonl"), key=lambda one: one.stat().st_mtime):
        known |= {one.name: one.seconds for one in measured(file) if one.outcome == "passed"}
    kept = sorted((name, taken) for name, taken in known.items() if taken >= RECORDED_FROM_S)
    DURATIONS.write_text("".join(f"{name}\t{taken:.0f}\n" for name, taken in kept), "utf-8")
    runs = {name: file for name in RUNS if (file := out / name / "stages.json").exists()}
    tables = {
        name: msgspec.json.decode(file.read_bytes(), type=list[StageTook])
        for name, file in runs.items()
    }
    text = CONTRIBUTING.read_text("utf-8")
    CONTRIBUTING.write_text(with_table(text, tables), "utf-8")


def with_table(text: str, tables: dict[str, list[StageTook]]) -> str:
    """The page with what was measured last; rows of runs that were not made stay as they are."""
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    rows = [line for line in old.splitlines() if line.startswith("| `")]
    kept = [line for line in rows if line.split("`")[1] not in tables]
    new = [
        f"| `{run}` | {one.name} | {minutes(one.seconds).strip()} |"
        for run, stages in tables.items()
        for one in stages
    ]
    order = {run: at for at, run in enumerate(RUNS)}
    lines = sorted([*kept, *new], key=lambda line: order[line.split("`")[1]])
    head = ["| run | stage | min:s |", "|---|---|---|"]
    return before + BEGIN + "\n".join([*head, *lines]) + "\n" + END + after


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60:3}:{int(seconds) % 60:02}"
