"""What the checks of examples share: waiting as long as something moves, above all."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHECKS = sorted(ROOT.glob("examples/*/check.sh"))
# It tells where all stands, another way as long as there are turns left.
HAPTERA = """#!/bin/bash
turns=$(cat turns)
[[ $* == *status* ]] || { echo "why: $*"; exit; }
((turns == 0)) || echo $((turns - 1)) >turns
cat turns
"""


def waited(place: Path, turns: int, script: str) -> subprocess.CompletedProcess[str]:
    """A check that waits, beside a cluster in which something moves for so many looks."""
    (place / "turns").write_text(str(turns))
    (place / "client.json").write_text("{}")
    (place / "haptera").write_text(HAPTERA)
    (place / "haptera").chmod(0o755)
    text = f"set -euo pipefail\nroot={place} wait_s=0\nsource {ROOT}/tools/checking.sh\n{script}"
    text = text.replace("\n" + script, f"\n_haptera={place}/haptera\n{script}")
    return subprocess.run(
        ["bash", "-c", text], cwd=place, capture_output=True, text=True, env={**os.environ}
    )


def test_a_check_waits_as_long_as_something_moves(tmp_path: Path) -> None:
    script = "wait_s=1; is_over() { ((_looks++ > 60)); }; _looks=0; wait_for 'the end' is_over\n"
    ended = waited(tmp_path, 1_000, script)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_check_that_waits_in_vain_says_why_where_the_logs_are_and_how_busy_it_is(
    tmp_path: Path,
) -> None:
    ended = waited(
        tmp_path, 2, "more_on_failure() { echo more; }; wait_s=1; wait_for 'the end' false\n"
    )
    what, why, more, logs, load = ended.stderr.splitlines()
    assert (ended.returncode, (tmp_path / "turns").read_text()) == (1, "0\n")
    assert (what.startswith("check: waited "), what.endswith(" s in vain: the end")) == (True, True)
    assert why.startswith("why: --client ")
    assert (more, logs.startswith(f"logs: {tmp_path}/parent/")) == ("more", True)
    assert load.startswith("load: ")


def test_what_else_moves_is_waited_for_too(tmp_path: Path) -> None:
    script = """
more_picture() { cat more; }
is_over() { echo x >>more; ((_looks++ > 60)); }
wait_s=1 _looks=0
wait_for 'the end' is_over
"""
    ended = waited(tmp_path, 0, script)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_must_hold_is_seen_to_while_a_check_waits(tmp_path: Path) -> None:
    script = """
while_waiting() { ((_looks < 3)) || fail 'too many'; }
is_over() { ((_looks++ > 9)); }
wait_s=60 _looks=0
wait_for 'the end' is_over
"""
    ended = waited(tmp_path, 0, script)
    assert (ended.returncode, ended.stderr.splitlines()[0]) == (1, "check: too many")


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.parent.name)
def test_each_check_has_what_checks_share_from_one_file(check: Path) -> None:
    text = check.read_text()
    assert "tools/checking.sh" in text
    own = {*re.findall(r"^(\w+)\(\)", text, re.MULTILINE)}
    shared = {*re.findall(r"^(\w+)\(\)", (ROOT / "tools/checking.sh").read_text(), re.MULTILINE)}
    assert own & shared == set()
