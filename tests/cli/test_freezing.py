"""`haptera freeze` and `haptera thaw` as a person types them."""

import json
import re

import pytest

from haptera.cli.main import OK, REFUSED, USAGE, run
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare
from haptera.model.entity import EntityId, node_id
from tests.api.serving import serving
from tests.cli.test_commands import columns, point_at, typed

pytestmark = pytest.mark.net
UNTIL = r"until \d{4}-\d\d-\d\d \d\d:\d\d UTC"


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    nodes = [Declare(node_id(f"rack1n{number}"), {}, "site") for number in (1, 2, 3)]
    web = Declare(EntityId("service", "web", "rack1n1"), {}, "site")
    with serving(*nodes, web) as one:
        point_at(one.url, "write-token", monkeypatch, tmp_path)
        yield one


def freeze(capsys, *arguments):
    return typed(capsys, "freeze", *arguments, "--reason", "board swap")


def test_what_is_frozen_is_told_with_its_end_and_shown_when_asked(cluster, capsys):
    assert typed(capsys, "freeze") == (OK, "nothing is frozen\n", "")
    code, out, errors = freeze(capsys, "rack1n[1-2]", "--for", "90m")

    sentence = rf"rack1n\[1-2\] \(3 entities\) {UNTIL}, by user:bob: board swap"
    assert (code, errors) == (OK, "")
    assert re.fullmatch(rf"frozen: {sentence}\n", out)
    code, out, _ = typed(capsys, "freeze")
    ((selector, until, *rest),) = columns(out)
    assert (selector, *rest) == ("rack1n[1-2]", "user:bob", "3", "board swap")
    assert re.fullmatch(UNTIL, f"until {until}")


FROZEN = "frozen by user:eve: board swap"


def test_what_is_as_desired_and_frozen_says_so(cluster, capsys):
    """A green line hides that nobody would mend it."""
    node, web = node_id("rack1n1"), EntityId("service", "web", "rack1n1")
    for entity in (node, web):
        cluster.do(cluster.backend.say, entity, frozen=FROZEN, condition=Condition.CONVERGED)

    assert columns(typed(capsys, "status", "node:*")[1]) == [
        ["node", "idle", "2", "rack1n[2-3]"],
        ["node", "converged, frozen", "1", "rack1n1", FROZEN],
    ]
    assert columns(typed(capsys, "get", "node:rack1n1")[1])[0][1] == "converged, frozen"
    sentence = f"node:rack1n1 is as desired; {FROZEN}\n"
    for words in (["why", "node:rack1n1"], ["why", "node:*"], ["chain", "rack1n1"]):
        assert typed(capsys, *words)[1].startswith(sentence)
    assert json.loads(typed(capsys, "get", "node:rack1n1", "-o", "json")[1])["frozen"] == FROZEN


def test_an_hour_is_what_nobody_chose_and_ever_has_no_end(cluster, capsys):
    ends = {}
    for arguments in ((), ("--for", "1h"), ("--for", "30s"), ("--for", "2d"), ("--for", "ever")):
        _, out, _ = freeze(capsys, "rack1n1", *arguments, "-o", "json")
        ends[arguments] = json.loads(out)["until_s"]
    hour = ends["--for", "1h"]

    assert ends["--for", "ever"] is None
    assert 0 <= hour - ends[()] <= 30
    assert 3_570 <= hour - ends["--for", "30s"] <= 3_600
    assert 47 * 3_600 <= ends["--for", "2d"] - hour <= 47 * 3_600 + 30


@pytest.mark.parametrize("selector", ["rack9", "rack1n[3-9]", "service:web@rack1n[8-9]"])
@pytest.mark.parametrize("more", [[], ["--even-if-none"]])
def test_a_name_that_is_not_there_is_not_frozen(cluster, capsys, selector, more):
    code, out, errors = freeze(capsys, selector, *more)
    assert (code, out) == (REFUSED, "")
    assert errors.startswith("error: no such node: rack")
    assert typed(capsys, "freeze")[1] == "nothing is frozen\n"


def test_a_pattern_that_means_nothing_yet_is_frozen_only_if_it_may(cluster, capsys):
    code, out, errors = freeze(capsys, "rack9*", "--for", "ever")
    assert (code, out) == (REFUSED, "")
    assert errors.startswith("error: rack9* selects nothing that is declared\n")
    frozen = "frozen: rack9* (0 entities) until thawed, by user:bob: board swap\n"
    assert freeze(capsys, "rack9*", "--for", "ever", "--even-if-none") == (OK, frozen, "")


def test_thawing_a_part_says_what_is_free_and_what_stays_frozen(cluster, capsys):
    freeze(capsys, "rack1n[1-3]", "--for", "ever")

    assert typed(capsys, "thaw", "rack1n1") == (
        OK,
        "thawed: rack1n1, frozen by user:bob; rack1n[2-3] stays frozen\n"
        "2 entities free again\n"
        "still frozen: rack1n[2-3] (2 entities) until thawed, by user:bob: board swap\n",
        "",
    )
    assert typed(capsys, "thaw", "*")[1] == (
        "thawed: rack1n[2-3], frozen by user:bob\n2 entities free again\n"
    )


def test_thawing_nothing_is_an_error_that_says_what_is_frozen(cluster, capsys):
    freeze(capsys, "rack1n1")

    assert typed(capsys, "thaw", "rack1n2") == (
        REFUSED,
        "",
        "error: nothing of rack1n2 is frozen\n  frozen is rack1n1 by user:bob\n",
    )


@pytest.mark.parametrize(
    ("arguments", "errors"),
    [
        (
            ("rack1n1",),
            "error: a freeze needs a reason\n  give one: --reason TEXT\n",
        ),
        (
            ("rack1n1", "--reason", "x", "--for", "soon"),
            "error: 'soon' is not a duration\n  write 500ms, 30s, 15m, 2h or 1d\n",
        ),
        (
            ("rack1n[1", "--reason", "x"),
            "error: a bracket that is not closed\n"
            "  selector 'rack1n[1', character 7\n  write a ]\n",
        ),
    ],
)
def test_what_cannot_be_frozen_is_told(cluster, capsys, arguments, errors):
    assert typed(capsys, "freeze", *arguments) == (REFUSED, "", errors)
    assert run(["thaw"]) == USAGE
