"""`haptera history` and `haptera revert` as a person types them."""

import io
import json

import pytest

from haptera.cli.main import REFUSED
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from tests.cli.clusters import cluster_of
from tests.cli.test_commands import typed

pytestmark = pytest.mark.net
NODES = [node_id(f"rack1n{number}") for number in (1, 2, 3)]
WEB = EntityId("service", "web", "rack1n1")
AT = "1970-01-01 00:16 UTC"


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with cluster_of("past", monkeypatch, tmp_path) as one:
        yield one


def test_a_revert_is_shown_and_asked_about_before_it_is_done(cluster, capsys, monkeypatch):
    shown = "1 change (1 unset) at revision 8\nnothing would run: everything already matches\n"
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
