"""The tutorial of a Slurm, typed from its first command to its last, in the demo it begins with.

Its roll goes by what a real Slurm does, so what is quoted of that comes soon, not at once.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import test_typed_pages as typed_pages
from tests.docs.pages import ROOT, sessions
from tests.docs.running_demo import running_demo
from tests.network import one_slurm_demo, why_no_networks
from tests.shell import shell

PAGE = ROOT / "docs/tutorial/slurm.md"
DEMO = "make demo DEMO=slurm"
WITHIN_S = 600
# What only looks; Slurm's own commands, too.
LOOKS = re.compile(rf"{typed_pages.LOOKS.pattern}|sinfo |grep |haptera (?:image list|roll status)")

pytestmark = [
    pytest.mark.net,
    pytest.mark.campaign,
    pytest.mark.timeout(WITHIN_S),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts and containers need root"),
]


@pytest.fixture
def demo() -> Iterator[Path]:
    """The demo while it runs, from when it can be asked."""
    if (why := why_no_networks()) is not None:
        pytest.skip(why)
    with one_slurm_demo(), running_demo("slurm") as folder:
        yield folder


def test_the_tutorial_of_a_slurm_answers_what_it_says(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typed_pages, "LOOKS", LOOKS)
    first, *others = sessions(PAGE)["docs/tutorial/slurm.md"]
    assert first.command == DEMO
    commands = [one for one in others if not one.command.startswith("make demo")]
    with shell(tmp_path, {}) as one:
        one.type(f"cd {ROOT}")
        for quoted in commands:
            typed_pages.answered(one, quoted, demo)
