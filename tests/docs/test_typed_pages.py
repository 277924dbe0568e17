"""The pages on freezes, history and modules: their commands, typed in their order."""

import re
import shlex
from pathlib import Path

import pytest

from haptera.cli.main import OK
from haptera.model.changes import Author, Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.views import Condition, ObservedView
from tests.api.serving import serving
from tests.cli.test_commands import point_at, typed

pytestmark = pytest.mark.net

PAGES = Path(__file__).resolve().parents[2] / "docs/reference"
RACK = [node_id(f"rack1n{number}") for number in (1, 2, 3)]
WEB = EntityId("service", "web", "rack1n1")
LABNODE, SERVICE = EntityId("module", "labnode", None), EntityId("module", "service", "n01")
SERVED = {
    "applied": ObservedView("current", True, "read", "haptera", 1_000),
    "run": ObservedView("running", True, "read", "haptera", 1_000),
}
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def session(page):
    """The page's first session: each command, with the lines that it answers."""
    text = (PAGES / page).read_text()
    _, lines = re.search(r"```(console|sh)\n(.*?)```", text, re.DOTALL).groups()
    found = []
    for line in lines.splitlines():
        if (command := re.fullmatch(r"(?:\$ )?haptera (.*)", line)) is not None:
            found.append((shlex.split(command[1], comments=True), []))
        else:
            found[-1][1].append(TIME.sub("AT", line))
    return found


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with serving() as one:
        point_at(one.url, "write-token", monkeypatch, tmp_path)
        yield one


def answers(page, capsys):
    """What each command of the page answers, all of which are done."""
    for command, _ in session(page):
        code, out, errors = typed(capsys, *command)
        assert (code, errors) == (OK, ""), command
        yield [TIME.sub("AT", line) for line in out.splitlines()]


def test_history_is_told_as_on_its_page(cluster, capsys):
    rack = [
        *(Declare(node, {"rack": "1"}, "site") for node in RACK),
        *(SetDesired(node, "power", "on", "site") for node in RACK),
        Declare(WEB, {}, "site"),
    ]
    cluster.do(cluster.backend.write, *rack, author=Author("user:ada", "first light"))
    port = SetDesired(WEB, "port", 80, "user:eve")
    cluster.do(cluster.backend.write, port, author=Author("user:eve"))
    assert [*answers("history.md", capsys)] == [told for _, told in session("history.md")]


def test_modules_are_shown_as_on_their_page(cluster, capsys):
    cluster.do(cluster.backend.write, Declare(LABNODE, {}, "site"), Declare(SERVICE, {}, "site"))
    for module, since_ms in ((LABNODE, 180_000), (SERVICE, 120_000)):
        cluster.do(
            cluster.backend.say,
            module,
            condition=Condition.CONVERGED,
            since_ms=since_ms,
            observed=SERVED,
        )
    cluster.backend.logs[SERVICE] = b"took n01 in\n"
    shown, why, logs, retried = answers("modules.md", capsys)
    assert shown == session("modules.md")[0][1]
    assert why == ["module:service@n01 is as desired"]
    assert logs == ["took n01 in"]
    assert retried == ["module:service@n01 is tried again"]


def test_what_the_page_freezes_is_free_at_its_end(cluster, capsys):
    cluster.do(cluster.backend.write, *(Declare(node, {}, "site") for node in RACK))
    frozen, shown, one, rest = answers("freezes.md", capsys)
    assert frozen[0].startswith("frozen: rack1")
    assert "board swap" in shown[0]
    assert one[0].startswith("thawed: rack1n3")
    assert rest[0].startswith("thawed: rack1")
    assert typed(capsys, "freeze")[:2] == (OK, "nothing is frozen\n")
