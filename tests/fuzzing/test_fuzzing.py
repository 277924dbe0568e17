"""Each parser withstands what a fuzzer thinks of, and all that one ever thought of."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.fuzzing.corpus import kept
from tests.fuzzing.targets import TARGETS
from tests.lab.rig import ROOT

SECONDS = 30


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_kept_is_read_or_refused(name: str) -> None:
    for one in kept(name):
        TARGETS[name](one)


@pytest.mark.campaign
@pytest.mark.timeout(10 * SECONDS)
@pytest.mark.skipif(find_spec("atheris") is None, reason="there is no atheris for this Python here")
@pytest.mark.parametrize("name", TARGETS)
def test_a_fuzzer_finds_nothing_that_breaks_it(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.fuzzing", name, "--seconds", str(SECONDS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr[-4000:]}"
