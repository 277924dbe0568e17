"""The page on selectors: what it shows is read and can be so; its limits are those of the code."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from haptera.cli.main import run
from haptera.kinds.meaning import check_selector
from haptera.kinds.rule import OF_BYTES_MAX
from haptera.model import nodeset, selector
from haptera.model.changes import Declare, SetDesired
from haptera.model.choice import OLDER, Layer
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.views import Condition, ObservedView
from tests.api.serving import serving
from tests.cli.test_commands import point_at

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/selectors.md").read_text("utf-8")


NODES = [node_id(f"rack1n{number}") for number in range(1, 5)]
WEBS = [EntityId("service", "web", one.name) for one in NODES[:2]]
ON, OFF = (ObservedView(value, True, "read", "bmc", 500) for value in ("on", "off"))
SILENT = ObservedView("on", False, "read", "bmc", 120_000)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    nodes = [Declare(one, {"groups": "gpu"} if one in NODES[1:] else {}, "site") for one in NODES]
    wanted = [SetDesired(NODES[1], "power", "on", "site")]
    with serving(*nodes, *wanted, *(Declare(one, {}, "site") for one in WEBS)) as one:
        for entity in (NODES[0], NODES[3]):
            one.do(one.backend.say, entity, observed={"power": ON})
        one.do(one.backend.say, NODES[1], observed={"power": OFF}, condition=Condition.STUCK)
        one.do(one.backend.say, NODES[2], observed={"power": SILENT}, condition=Condition.WAITING)
        remembered = ObservedView("running", False, "read", "service", 120_000)
        waits = {"observed": {"run": remembered}, "condition": Condition.WAITING}
        one.do(one.backend.say, WEBS[1], **waits)
        point_at(one.url, "write-token", monkeypatch, tmp_path)
        yield


@pytest.mark.net
@pytest.mark.usefixtures("cluster")
def test_the_session_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```text session\n(.*?)```", PAGE, re.DOTALL)
    for typed, printed in re.findall(r"^\$ haptera (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
        run(shlex.split(typed))
        told = capsys.readouterr()
        assert re.sub(r"(there are) .*", r"\1 …", told.out + told.err) == printed, typed


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_each_selector_of_the_table_can_be_meant() -> None:
    shown = re.findall(r"^\| `(.+?)` \|", section("What it may be of"), re.MULTILINE)
    commands = re.findall(r"^haptera .*?'(.*?)'", PAGE, re.MULTILINE)

    assert len(shown) > 15
    for text in (*shown, *commands):
        check_selector(selector.parse_selector(text))


@pytest.mark.parametrize("text", ["service:web and rack=r1"])
def test_what_it_says_is_refused_is_refused(text: str) -> None:
    assert f"`{text}`" in PAGE
    with pytest.raises(HapteraError):
        check_selector(selector.parse_selector(text))


def test_the_words_are_those_of_the_code() -> None:
    assert ", ".join(Condition) in PAGE
    grammar = section("Grammar")
    assert all(f'"{one}."' in grammar for one in Layer if one)
    assert all(f'"{one}"' in grammar for one in (*OLDER, *nodeset.Operator))


def test_the_limits_are_those_of_the_code() -> None:
    told = dict(re.findall(r"^\| `([A-Z_]+)`: .* \| ([0-9,]+) \|$", PAGE, re.MULTILINE))

    assert told == {
        name: f"{getattr(nodeset, name):,}"
        for name in ("NODES_MAX", "NODESET_BYTES_MAX", "STEPS_MAX", "WILD_MAX", "GROUPS_MAX")
    }
    assert f"at most {selector.SELECTOR_BYTES_MAX:,} bytes" in PAGE
    assert f"`PARTS_MAX` of {selector.PARTS_MAX} names" in PAGE
    assert f"`DEPTH_MAX` of {selector.DEPTH_MAX} deep" in PAGE
    assert f"within {OF_BYTES_MAX} bytes" in PAGE
