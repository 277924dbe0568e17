"""The page on why: its examples are what the commands print, its figures those of the code."""

import re
from pathlib import Path

import msgspec
import pytest

from haptera.cli.main import OK, run
from haptera.core.query import TRIED_SHOWN_MAX
from haptera.daemon.backend import AGENT_WITHIN_S
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId
from haptera.model.views import Condition, LinkView, ObservedView, TriedView
from haptera.runtime.requests import LOG_BYTES_MAX
from tests.api.serving import Serving, serving
from tests.cli.test_commands import point_at

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/why.md").read_text(encoding="utf-8")
WEB = EntityId("service", "web", "n01")
START = LinkView("service.start", "brings run to running", "self")
ENDED = "returned, but run is failed: it ended with status 3"
STUCK = {
    "condition": Condition.STUCK,
    "since_ms": 8_000,
    "why": f"service.start: {ENDED}",
    "observed": {"run": ObservedView("failed", True, "read", "service", 2_000)},
    "chain": [START],
    "unblock": "the agent of n01, by service.start",
}
WAITING = {
    "condition": Condition.WAITING,
    "since_ms": 3_000,
    "why": "waits for node.agent=up",
    "chain": [START],
    "tried": [TriedView("labnode.switch_on", 61_000, "no answer within 2 s")],
}


def stuck(one: Serving) -> None:
    one.backend.say(WEB, **STUCK, told_by="n01")
    one.backend.agents[WEB] = msgspec.structs.replace(
        one.backend.entity(WEB),
        told_by=None,
        tried=[TriedView("service.start", 8_000, ENDED)],
        again_in_ms=4_000,
    )


def waiting(one: Serving) -> None:
    one.backend.say(WEB, **WAITING)
    one.backend.unasked = "the agent of n01 did not answer within 2 s"


@pytest.mark.net
@pytest.mark.parametrize(("example", "stands"), [("why", stuck), ("chain", waiting)])
def test_the_examples_are_what_is_printed(example, stands, capsys, monkeypatch, tmp_path) -> None:
    (block,) = re.findall(rf"```text {example}\n(.*?)```", PAGE, re.DOTALL)
    typed, _, printed = block.partition("\n")
    with serving(Declare(WEB, {}, "site"), SetDesired(WEB, "run", "running", "site")) as one:
        one.do(stands, one)
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        assert run(typed.removeprefix("$ haptera ").split()) == OK
    assert capsys.readouterr().out == printed


def test_the_figures_are_those_of_the_code() -> None:
    assert f"the last {LOG_BYTES_MAX // 1024} kB" in PAGE
    assert f"the last {TRIED_SHOWN_MAX} steps" in PAGE
    assert AGENT_WITHIN_S == 2.0
