"""The page on why: its examples are what the commands print, its figures those of the code."""

import re
from pathlib import Path

import msgspec
import pytest

from haptera.cli.main import OK, run
from haptera.core.query import TRIED_SHOWN_MAX
from haptera.core.unblock import NO_WAY
from haptera.daemon.backend import AGENT_WITHIN_S
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.explained import Alternative, Explained, Nearest
from haptera.model.views import Condition, LinkView, ObservedView, TriedView
from haptera.runtime.requests import LOG_BYTES_MAX
from tests.api.serving import Serving, serving
from tests.cli.test_commands import point_at

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/why.md").read_text(encoding="utf-8")
NODE = node_id("n01")
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


def silent(one: Serving) -> None:
    for number in (1, 2, 3):
        why = f"labnode.switch_off waits: the agent of rack1n{number} is silent: no-permit"
        seen = {"condition": Condition.WAITING, "since_ms": 50_000 * number, "why": why}
        node = node_id(f"rack1n{number}")
        one.backend.write(Declare(node, {}, "site"))
        one.backend.say(node, **seen)


def busy(one: Serving) -> None:
    step = LinkView("labnode.force_off", "brings power to off", "parent", disruptive=True)
    excluded = "labnode.switch_off is excluded by busy=busy"
    refused = "labnode.force_off waits: n01 does not permit it: 2 jobs run"
    one.backend.say(
        NODE,
        condition=Condition.WAITING,
        since_ms=3_000,
        why=f"{excluded}; instead {refused}",
        chain=[step],
    )
    one.backend.unasked = "the agent of n01 did not answer within 2 s"
    one.backend.reasons[NODE] = Explained(
        cost=20,
        so_that=["so that power is off, as desired"],
        no_other=True,
        cheaper=Alternative(excluded, 1, ["labnode.switch_off"]),
    )


def none(one: Serving) -> None:
    why = "nothing leads to busy=free"
    one.backend.say(NODE, condition=Condition.STUCK, since_ms=42_000, why=why)
    one.backend.unasked = "the agent of n01 did not answer within 2 s"
    offer = "module jobs would look at busy (jobs.look_busy): add it to the site's modules"
    one.backend.reasons[NODE] = Explained(
        nearest=Nearest({"power": "off"}, 1, ["labnode.switch_off"]), offers=[offer]
    )


@pytest.mark.net
@pytest.mark.parametrize(
    ("example", "stands"),
    [("why", stuck), ("chain", waiting), ("together", silent), ("busy", busy), ("none", none)],
)
def test_the_examples_are_what_is_printed(example, stands, capsys, monkeypatch, tmp_path) -> None:
    (block,) = re.findall(rf"```text {example}\n(.*?)```", PAGE, re.DOTALL)
    typed, _, printed = block.partition("\n")
    node = () if example == "together" else (Declare(NODE, {}, "site"),)
    web = (Declare(WEB, {}, "site"), SetDesired(WEB, "run", "running", "site"))
    with serving(*node, *web) as one:
        one.do(stands, one)
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        assert run(typed.removeprefix("$ haptera ").split()) == OK
    assert capsys.readouterr().out == printed


def test_what_is_needed_where_there_is_no_chain_is_what_the_code_says() -> None:
    assert all(f"| {needs} |" in PAGE for needs in NO_WAY.values())


def test_the_figures_are_those_of_the_code() -> None:
    assert f"the last {LOG_BYTES_MAX // 1024} kB" in PAGE
    assert f"the last {TRIED_SHOWN_MAX} steps" in PAGE
    assert AGENT_WITHIN_S == 2.0
