"""Tutorials that begin with a demo, typed from their first command to their last."""

import os
import re
from pathlib import Path

import pytest

from tests.docs import test_typed_pages as typed_pages
from tests.docs.pages import ROOT, sessions
from tests.docs.running_demo import PAGES_OF_DEMOS, running_demo
from tests.shell import shell

AS_ROOT = {"containers": "mounts and containers need root"}
WITHIN_S = 600
# A job runs on whichever node; its image may still be made when it is looked for first.
LOOKS = re.compile(rf"{typed_pages.LOOKS.pattern}|haptera get")

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(WITHIN_S)]


@pytest.mark.parametrize("name", PAGES_OF_DEMOS)
def test_a_tutorial_answers_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in AS_ROOT and os.geteuid() != 0:
        pytest.skip(AS_ROOT[name])
    monkeypatch.setattr(typed_pages, "LOOKS", LOOKS)
    page = PAGES_OF_DEMOS[name]
    first, *others = sessions(ROOT / page)[page]
    assert first.command == f"make demo DEMO={name}"
    with running_demo(name) as demo, shell(tmp_path, {}) as one:
        one.type(f"cd {ROOT}")
        for quoted in others:
            typed_pages.answered(one, quoted, demo)
