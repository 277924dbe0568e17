"""The page on jobs: its commands are typed, and answer what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from haptera.keeping.gate import gate_path

pytestmark = pytest.mark.net

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/jobs.md").read_text(encoding="utf-8")
WAIT_S = 60
CLOSED = 75


def blocks(title: str) -> list[str]:
    return re.findall(rf"^```{title}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def typed(block: str, gate: Path) -> tuple[int, str]:
    """What a shell answers to the lines with a `$`: its exit code, and all that it writes."""
    lines = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-c", "\n".join(lines)],
        env={**os.environ, "PATH": path, "HAPTERA_JOBS": str(gate)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WAIT_S,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("block", blocks("console"))
def test_with_the_gate_closed_no_command_of_the_page_runs_a_job(block: str, tmp_path: Path) -> None:
    code, output = typed(block, gate_path(tmp_path))

    assert code != 0
    assert "counting" not in output


def test_the_page_shows_three_ways_to_begin_a_job() -> None:
    assert len(blocks("console")) == 3
