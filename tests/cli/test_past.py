"""`haptera history` and `haptera revert` as a person types them."""

import io
import json

import pytest

from haptera.cli.main import OK, REFUSED, USAGE
from haptera.model.answers.past import Happened, PastView, Sort
from haptera.model.changes import Author, Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from tests.api.serving import serving
from tests.cli.test_commands import columns, point_at, typed

pytestmark = pytest.mark.net
NODES = [node_id(f"rack1n{number}") for number in (1, 2, 3)]
WEB = EntityId("service", "web", "rack1n1")
AT = "1970-01-01 00:16 UTC"


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with serving() as one:
        one.do(
            one.backend.write,
            *(Declare(node, {"rack": "1"}, "site") for node in NODES),
            *(SetDesired(node, "power", "on", "site") for node in NODES),
            Declare(WEB, {}, "site"),
            author=Author("user:ada", "first light"),
        )
        port = SetDesired(WEB, "port", 80, "user:eve")
        one.do(one.backend.write, port, author=Author("user:eve"))
        point_at(one.url, "write-token", monkeypatch, tmp_path)
        yield one


def test_what_changed_alike_on_many_nodes_is_one_line(cluster, capsys):
    code, out, errors = typed(capsys, "history")
    assert (code, errors) == (OK, "")
    ada = ("7", AT, "user:ada")
    assert columns(out) == [
        [*ada, "node", "rack1n[1-3]", 'declared {"rack":"1"}', "first light"],
        [*ada, "node", "rack1n[1-3]", "power: nothing -> on", "first light"],
        [*ada, "service:web", "rack1n1", "declared", "first light"],
        ["8", AT, "user:eve", "service:web", "rack1n1", "port: nothing -> 80"],
    ]


def test_what_is_not_shown_is_said(cluster, capsys):
    code, out, errors = typed(capsys, "history", "node:rack1n3", "-n", "1")
    assert (code, columns(out)[0][2:5]) == (OK, ["user:ada", "node", "rack1n3"])
    assert errors == "older changes are not shown: raise --limit above 1\n"
    assert typed(capsys, "history", "rack9*") == (
        REFUSED,
        "",
        "error: there is no rack9*\n  see what there is: haptera status\n",
    )
    assert typed(capsys, "history", "rack9")[2].startswith("error: no such node: rack9\n")


def test_changes_are_selected_by_who_and_when_however_many_others_there_are(cluster, capsys):
    for who in ("eve", "user:eve"):
        code, out, _ = typed(capsys, "history", "--who", who, "-n", "1")
        assert (code, columns(out)[0][:4]) == (OK, ["8", AT, "user:eve", "service:web"])
    assert typed(capsys, "history", "--who", "user:ada", "-n", "2")[1].count("user:ada") == 2
    assert typed(capsys, "history", "--who", "mallory") == (OK, "no changes\n", "")
    assert typed(capsys, "history", "--since", "1970-01-01 00:17") == (OK, "no changes\n", "")
    assert len(columns(typed(capsys, "history", "--since", "1970-01-01 00:16")[1])) == 4
    assert typed(capsys, "history", "--who", "eve", "--audit")[0] == USAGE
    assert typed(capsys, "history", "--since", "soon")[0] == REFUSED


def test_the_audit_tells_who_asked_for_what(cluster, capsys):
    typed(capsys, "retry", "node:rack1n1")
    code, out, _ = typed(capsys, "history", "--audit")
    assert (code, columns(out)) == (
        OK,
        [
            ["7", AT, "user:ada", "7 changes", "first light"],
            ["8", AT, "user:eve", "1 change"],
            ["-", AT, "user:bob", "retry node:rack1n1"],
        ],
    )
    assert typed(capsys, "history", "--audit", "rack1n1")[0] == USAGE


def test_all_that_happened_is_told_in_its_order(cluster, capsys):
    cluster.backend.happenings = [
        Happened(1003.0, "node:rack1n1", Sort.TRIED, "bmc.switch_on", "worked", "done"),
        Happened(1002.0, "node:rack1n1", Sort.SEEN, "power", "on", "bmc"),
        Happened(1001.0, "node:rack1n1", Sort.STANDS, None, "stuck", "jammed"),
        Happened(999.0, "", Sort.LOST, None, "3"),
        Happened(999.0, "", Sort.BEGUN),
    ]
    code, out, errors = typed(capsys, "history", "node:rack1n1", "--all")
    assert (code, errors) == (OK, "")
    node = "node:rack1n1"
    assert out.splitlines() == [
        "TIME                     WHO       ENTITY        WHAT",
        "1970-01-01 00:16:39 UTC  -         parent        began, with nothing known",
        "1970-01-01 00:16:39 UTC  -         history       3 events could not be recorded",
        f'1970-01-01 00:16:40 UTC  user:ada  {node}  declared {{"rack":"1"}}',
        f"1970-01-01 00:16:40 UTC  user:ada  {node}  power: nothing -> on",
        f"1970-01-01 00:16:41 UTC  -         {node}  stuck: jammed",
        f"1970-01-01 00:16:42 UTC  bmc       {node}  power is on",
        f"1970-01-01 00:16:43 UTC  -         {node}  bmc.switch_on worked: done",
    ]


def test_how_an_entity_was_at_a_time(cluster, capsys):
    view = PastView("node:rack1n1", {}, {"power": "on"}, {"power": "off?"}, "stuck", "jammed")
    cluster.backend.pasts[60] = [view]
    code, out, errors = typed(capsys, "get", "node", "--at", "1970-01-01 00:01")
    assert (code, errors, out.splitlines()) == (
        OK,
        "",
        [
            "as it was at 1970-01-01 00:01:00 UTC",
            "ENTITY        CONDITION  STATE          REASON",
            "node:rack1n1  stuck      power=off?→on  jammed",
        ],
    )
    code, out, errors = typed(capsys, "get", "service", "--at", "1970-01-01 00:01")
    assert (code, out) == (REFUSED, "")
    assert errors.startswith("error: there was no service at 1970-01-01 00:01:00 UTC\n")
    assert typed(capsys, "get", "node", "--at", "noon")[0] == REFUSED


def test_how_many_alike_were_is_told_in_one_line(cluster, capsys):
    views = [PastView(str(node), {}, {}, {"power": "on"}, "idle") for node in NODES]
    cluster.backend.pasts[60] = [*views, PastView("module:m", {}, {}, {})]
    _, out, _ = typed(capsys, "get", "rack1n* or module:m", "--at", "1970-01-01 00:01")
    assert columns(out)[1:] == [["node:rack1n[1-3]", "idle", "power=on"], ["module:m", "-", "-"]]


def test_what_is_yet_to_come_is_not_told(cluster, capsys):
    code, out, errors = typed(capsys, "get", "node", "--at", "9999-12-31")
    assert (code, out) == (REFUSED, "")
    assert errors.startswith("error: 9999-12-31 00:00:00 UTC is in the future\n")


def test_what_differs_between_two_times(cluster, capsys):
    views = [PastView(str(node), {}, {"power": "on"}, {"power": "off"}, "stuck") for node in NODES]
    cluster.backend.pasts[60] = views[:2]
    cluster.backend.pasts[120] = [
        PastView(str(NODES[0]), {}, {"power": "on"}, {"power": "on"}, "converged"),
        *views[1:],
    ]
    times = ("--at", "1970-01-01 00:01", "--at", "1970-01-01 00:02")
    code, out, errors = typed(capsys, "diff", *times)
    assert (code, errors, out.splitlines()) == (
        1,
        "",
        [
            "--- 1970-01-01 00:01:00 UTC",
            "+++ 1970-01-01 00:02:00 UTC",
            "-node:rack1n1 power=off",
            "+node:rack1n1 power=on",
            "-node:rack1n1 stands=stuck",
            "+node:rack1n1 stands=converged",
            "+node:rack1n3",
            "+node:rack1n3 power=off",
            "+node:rack1n3 stands=stuck",
            "+node:rack1n3 want power=on",
        ],
    )
    assert typed(capsys, "diff", *times, "--select", "node:rack1n2") == (OK, "", "")
    assert typed(capsys, "diff")[0] == USAGE
    assert typed(capsys, "diff", "site.yaml", *times)[0] == USAGE


def test_a_revert_is_shown_and_asked_about_before_it_is_done(cluster, capsys, monkeypatch):
    shown = "1 change (1 unset) at revision 8\nnothing would run: everything already matches\n"
    assert typed(capsys, "revert", "8", "--dry-run") == (OK, shown, "")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, out, errors = typed(capsys, "revert", "8")
    assert (code, out) == (REFUSED, shown)
    assert errors.splitlines()[-2:] == [
        "error: not confirmed: nothing was written",
        "  answer y, or give --yes",
    ]
    assert "port" in cluster.backend.store[WEB].desired
    code, _, errors = typed(capsys, "revert", "8", "-o", "json")
    (error,) = json.loads(errors[errors.index("{") :])["errors"]
    assert (code, error["code"]) == (REFUSED, Code.NOT_CONFIRMED)

    code, out, _ = typed(capsys, "revert", "8", "--yes", "--why", "it was free")
    assert (code, out) == (OK, f"{shown}1 change (1 unset) written (revision 9)\n")
    assert "port" not in cluster.backend.store[WEB].desired
    _, out, _ = typed(capsys, "history", "-n", "1")
    assert columns(out) == [
        ["9", AT, "user:bob", "service:web", "rack1n1", "port: 80 -> nothing", "it was free"]
    ]


def test_what_cannot_be_undone_is_told_with_all_that_stands_against_it(cluster, capsys):
    code, out, errors = typed(capsys, "revert", "7", "--yes")
    assert (code, out) == (REFUSED, "")
    assert errors.splitlines() == [
        "error: service:web@rack1n1 was given port since it was declared",
        "  revert the later change first, or set the value again",
    ]
    assert typed(capsys, "revert", "99")[0] == REFUSED


def test_a_freeze_is_told_as_a_freeze(cluster, capsys):
    typed(capsys, "freeze", "rack1n1", "--reason", "board swap", "--for", "ever")
    typed(capsys, "thaw", "rack1n1")
    rows = [row[2:] for row in columns(typed(capsys, "history")[1])[-2:]]
    assert [(who, what.partition(":")[0], *rest) for who, what, *rest in rows] == [
        ("user:bob", "freeze", "frozen: rack1n1", "board swap"),
        ("user:bob", "freeze", "thawed"),
    ]
