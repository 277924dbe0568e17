"""The tutorial of jobs in images, typed from its first command to its last, in its demo."""

import os
import re
from pathlib import Path

import pytest

from tests.docs import test_typed_pages as typed_pages
from tests.docs.pages import ROOT, sessions
from tests.docs.running_demo import running_demo
from tests.shell import shell

PAGE = "docs/tutorial/containers.md"
WITHIN_S = 600
# A job runs on whichever node; its image may still be made when it is looked for first.
LOOKS = re.compile(rf"{typed_pages.LOOKS.pattern}|haptera get")

pytestmark = [
    pytest.mark.net,
    pytest.mark.campaign,
    pytest.mark.timeout(WITHIN_S),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts and containers need root"),
]


def test_the_tutorial_of_containers_answers_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typed_pages, "LOOKS", LOOKS)
    first, *others = sessions(ROOT / PAGE)[PAGE]
    assert first.command == "make demo DEMO=containers"
    with running_demo("containers") as demo, shell(tmp_path, {}) as one:
        one.type(f"cd {ROOT}")
        for quoted in others:
            typed_pages.answered(one, quoted, demo)
