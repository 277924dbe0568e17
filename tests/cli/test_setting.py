"""Desiring values of many at once, as a person types it: by selector, all or none, by plan."""

import json

import pytest

from haptera.cli.commands.change.set import check_writable
from haptera.cli.main import OK, REFUSED
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.rest.schemas import PATCHES_MAX
from tests.api.serving import serving
from tests.cli.test_commands import point_at, typed

NODES = [node_id(f"n{number}") for number in range(1, 5)]
WEB = EntityId("service", "web", "n1")

pytestmark = pytest.mark.net


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """Four nodes, the last of which is the site's to switch, and a service."""
    declared = [Declare(one, {}, "site") for one in (*NODES, WEB)]
    with serving(*declared, SetDesired(NODES[3], "power", "on", "site")) as one:
        point_at(one.url, "write-token", monkeypatch, tmp_path)
        yield one


def wanted(capsys):
    """What is desired of the nodes' power, by the nodes' names."""
    views = json.loads(typed(capsys, "get", "node", "-o", "json")[1])
    return {view["name"]: view["desired"].get("power", {}).get("value") for view in views}


def test_what_a_selector_means_is_set_and_unset_in_one_write(cluster, capsys):
    written = (OK, "node:n[1-3] written (revision 9)\n", "")
    assert typed(capsys, "set", "node:n[1-3]", "power=off", "-m", "new fans") == written
    assert wanted(capsys) == {"n1": "off", "n2": "off", "n3": "off", "n4": "on"}
    assert cluster.backend.history[-1][1].why == "new fans"
    assert typed(capsys, "set", "node:*", "power=off", "--take", "-o", "name")[1] == "node:n[1-4]\n"
    assert typed(capsys, "unset", "node:n[1-4]", "power")[0] == OK
    assert set(wanted(capsys).values()) == {None}
    assert typed(capsys, "set", "node:n1", "power=on")[0] == OK
    assert typed(capsys, "set", "node:n1", "--unset", "power")[0] == OK
    assert wanted(capsys)["n1"] is None
    assert typed(capsys, "set", "node:n1")[2].endswith("Missing argument 'NAME=VALUE...'.\n")


def test_all_is_set_or_nothing(cluster, capsys):
    code, out, errors = typed(capsys, "set", "node:*", "power=off")
    assert (code, out) == (REFUSED, "")
    assert errors.startswith("error: power of node:n4 belongs to site, who wants on\n")
    assert wanted(capsys)["n1"] is None


def test_a_value_that_can_never_be_is_told_before_whose_it_is(cluster, capsys):
    told = "error: node.power cannot be 'purple'\n"
    assert typed(capsys, "set", "node:n4", "power=purple")[2].startswith(told)


def test_what_is_set_is_of_one_kind(cluster, capsys):
    assert typed(capsys, "set", "n[1-1]", "run=stopped") == (
        REFUSED,
        "",
        "error: 'n[1-1]' matches entities of the kinds node, service\n"
        "  select one kind, as node:rack1n1 or service:web@rack1*\n",
    )
    assert typed(capsys, "set", "node:n9", "power=on")[2].startswith("error: there is no node:n9\n")
    errors = typed(capsys, "set", "node:n[1-2,8-9]", "power=off")[2]
    assert errors.startswith("error: no such node: n[8-9]\n")
    assert wanted(capsys)["n1"] is None


def test_no_more_is_set_than_one_write_takes():
    names = [f"node:n{number}" for number in range(PATCHES_MAX + 1)]
    check_writable("node:*", names[:-1])
    with pytest.raises(HapteraError, match="'node:\\*' matches 10001 entities, more than 10000"):
        check_writable("node:*", names)


@pytest.mark.parametrize("whom", ["node:n1", "node:n[1-3]"])
def test_what_disrupts_much_needs_the_digest_that_a_dry_run_ends_with(cluster, capsys, whom):
    cluster.backend.disrupts = ["n1", "n2", "n3"]
    code, out, _ = typed(capsys, "set", whom, "power=off", "--dry-run")
    assert (code, out.splitlines()[0]) == (OK, f"{whom} would be written, at revision 6")
    digest = out.splitlines()[-1].removeprefix("plan ")
    other = typed(capsys, "set", whom, "power=off", "--digest", "0" * 12)
    assert (other[0], "is out of date" in other[2]) == (REFUSED, True)
    assert set(wanted(capsys).values()) == {None, "on"}
    assert typed(capsys, "set", whom, "power=off", "--digest", digest)[0] == OK
    assert wanted(capsys)["n1"] == "off"


def test_many_are_not_disrupted_unseen(cluster, capsys):
    cluster.backend.disrupts = ["n1", "n2", "n3"]
    code, out, errors = typed(capsys, "set", "node:n[1-3]", "power=off")
    assert (code, out) == (REFUSED, "")
    assert errors.startswith("error: this disrupts up to 3 of 4 nodes, more than 10 %: n[1-3]\n")
