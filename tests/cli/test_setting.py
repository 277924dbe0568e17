"""Desiring values of many at once, as a person types it: by selector, all or none, by plan."""

import json

import pytest

from haptera.cli.commands.change.set import check_writable
from haptera.cli.main import OK, REFUSED
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.rest.schemas import PATCHES_MAX
from tests.cli.clusters import cluster_of
from tests.cli.test_commands import typed

NODES = [node_id(f"n{number}") for number in range(1, 5)]
WEB = EntityId("service", "web", "n1")

pytestmark = pytest.mark.net


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with cluster_of("four", monkeypatch, tmp_path) as one:
        yield one


def wanted(capsys):
    """What is desired of the nodes' power, by the nodes' names."""
    views = json.loads(typed(capsys, "get", "node", "-o", "json")[1])
    return {view["name"]: view["desired"].get("power", {}).get("value") for view in views}


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
