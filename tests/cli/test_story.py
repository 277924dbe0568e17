"""`haptera debug story`: each decision, with what had happened before it and what it claims."""

import json

import pytest

from haptera.cli.main import OK, REFUSED, run
from haptera.model.answers.story import DecisionView
from haptera.model.changes import Declare
from haptera.model.entity import node_id
from tests.api.serving import serving
from tests.cli.rig import point_at, told

pytestmark = pytest.mark.net

N1 = node_id("n1")
DECISIONS = [
    DecisionView(12_000, "acting", "look: bmc.look", claims=["slot (bmc.look): granted"]),
    DecisionView(
        11_000,
        "waiting",
        "wait",
        why="bmc.off waits:\x1b[2J no room",
        seen={"agent": None, "power": "on"},
        ended=["bmc.on: done"],
        looks=["bmc.look"],
        wake_in_ms=1_500,
        incomplete=True,
    ),
]
SHOWN = """\
12 s ago  acting
  next   look: bmc.look
  claims slot (bmc.look): granted
11 s ago  waiting: bmc.off waits: [2J no room
  seen   agent is not known
  seen   power is on
  ended  bmc.on: done
  next   wait
  looks  bmc.look
  again  in 1.5 s
  again  as soon as there is time to plan
"""


@pytest.fixture
def parent(monkeypatch, tmp_path):
    with serving(Declare(N1, {}, "site")) as one:
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        yield one


def shown(capsys, *arguments):
    code = run(["debug", "story", *arguments])
    return code, *capsys.readouterr()


def test_each_decision_is_shown_with_what_led_to_it_and_what_it_claims(capsys, parent):
    parent.backend.decisions[N1] = DECISIONS
    assert shown(capsys, "node:n1") == (OK, SHOWN, "")
    code, out, _ = shown(capsys, "n1", "-o", "json")
    assert (code, json.loads(out)["decisions"][1]["wake_in_ms"]) == (OK, 1_500)


def test_of_what_nothing_was_decided_on_yet_that_is_said(capsys, parent):
    assert shown(capsys, "node:n1")[1] == "nothing was decided on it since the parent started\n"


def test_of_what_is_not_there_there_is_no_story(capsys, parent):
    text = "see which there are: haptera get node, or GET /v1/entities?kind=node"
    assert shown(capsys, "node:n9") == (REFUSED, "", told("there is no node:n9", None, text))
