"""Each planted bug is found: the patches here, applied to a copy of the source, one at a time."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATCHES = sorted(Path(__file__).parent.glob("*.patch"))
SEEDS_MAX = 150
FIND_WITHIN_S = 300
# What a judge or a test says: an assertion, or that what it waits for does not come. An import that
# breaks says otherwise.
FOUND = ("AssertionError", "Failed: DID NOT RAISE", "TimeoutError")
# From the seed that is named on, to save time.
BY_SEEDS = "seeds from "

HUNT = """
import sys
import haptera
from tests.world.hunt import first_broken
assert haptera.__file__.startswith(sys.argv[1]), haptera.__file__
start, count = map(int, sys.argv[2].split("+"))
found = first_broken(range(start, start + count))
sys.stdout.write("nothing" if found is None else "seed %d: %s" % found)
sys.exit(found is not None)
"""
TEST = """
import sys
import haptera
import pytest
assert haptera.__file__.startswith(sys.argv[1]), haptera.__file__
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", sys.argv[2]]))
"""


def test_there_are_mutants() -> None:
    assert len(PATCHES) >= 10


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_each_patch_applies() -> None:
    """Which of them are tried hangs on what changed: one that no longer applies would hide."""
    refused = {
        patch.stem: said
        for patch in PATCHES
        if (said := _apply(patch, ROOT, "--check")) is not None
    }
    assert refused == {}


def _apply(patch: Path, folder: Path, *options: str) -> str | None:
    """Why a patch does not apply to this folder, if so."""
    words = ["git", "apply", "-C1", *options, str(patch)]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return ran.stderr if ran.returncode else None


@pytest.mark.campaign
@pytest.mark.timeout(FIND_WITHIN_S + 10)
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_planted_bug_is_found(patch: Path, tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    assert _apply(patch, tmp_path) is None, f"refresh the patch {patch.name}"
    found_by = patch.read_text().splitlines()[1].removeprefix("Found by: ")
    first = found_by.removeprefix(BY_SEEDS)
    hunt = (TEST, found_by) if first == found_by else (HUNT, f"{first}+{SEEDS_MAX}")
    path = f"{tmp_path / 'src'}{os.pathsep}{ROOT}"
    ended = subprocess.run(
        [sys.executable, "-c", hunt[0], str(tmp_path), hunt[1]],
        cwd=ROOT,
        env={
            **os.environ,
            "HYPOTHESIS_PROFILE": "hunt",
            "PYTHONPATH": path,
            "WAITED_WITHIN_S": "15",
        },
        capture_output=True,
        text=True,
        timeout=FIND_WITHIN_S,
    )
    told = ended.stdout
    assert ended.returncode == 1, f"survives {found_by}: {told[-2000:]}"
    assert any(one in told for one in FOUND), (
        f"breaks otherwise: {told[-2000:]}{ended.stderr[-2000:]}"
    )
