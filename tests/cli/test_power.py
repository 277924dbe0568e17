"""`haptera power`: off, on and cycle do what operators mean, whoever desires what."""

import pytest

from haptera.cli.main import OK, REFUSED, USAGE
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from tests.api.serving import serving
from tests.cli.test_commands import point_at, typed

pytestmark = pytest.mark.net
NODES = [node_id(name) for name in ("n1", "n2")]


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    wants = [
        SetDesired(node, name, value, "site")
        for node in NODES
        for name, value in (("power", "on"), ("agent", "up"))
    ]
    web = Declare(EntityId("service", "web", "n1"), {}, "site")
    with serving(*(Declare(node, {}, "site") for node in NODES), web, *wants) as one:
        point_at(one.url, "write-token", monkeypatch, tmp_path)
        yield one


def wanted(cluster, node):
    return {name: one.value for name, one in cluster.backend.store[node].desired.items()}


def test_off_wants_no_agent_of_what_is_off(cluster, capsys):
    assert typed(capsys, "power", "off", "n1", "-m", "new fans")[0] == OK
    assert [wanted(cluster, node) for node in NODES] == [
        {"power": "off"},
        {"power": "on", "agent": "up"},
    ]


def test_on_and_off_take_selectors(cluster, capsys):
    assert typed(capsys, "power", "off", "n[1-2]")[0] == OK
    assert [wanted(cluster, node) for node in NODES] == [{"power": "off"}] * 2
    assert typed(capsys, "power", "on", "n[1-2]")[0] == OK
    assert [wanted(cluster, node) for node in NODES] == [{"power": "on"}] * 2


def test_a_dry_run_writes_nothing(cluster, capsys):
    assert typed(capsys, "power", "cycle", "n1", "--dry-run")[0] == OK
    assert wanted(cluster, NODES[0]) == {"power": "on", "agent": "up"}


def test_a_cycle_ends_with_power_on_and_the_agents_desired_that_were(cluster, capsys):
    typed(capsys, "unset", "n2", "agent", "--take")
    assert typed(capsys, "power", "cycle", "n*", "--timeout", "1m")[0] == OK
    assert [wanted(cluster, node) for node in NODES] == [
        {"power": "on", "agent": "up"},
        {"power": "on"},
    ]


def test_nothing_is_switched_where_it_is_not_said_for_how_long_to_wait(cluster, capsys):
    assert typed(capsys, "power", "cycle", "n1", "--timeout", "soon")[0] == REFUSED
    assert wanted(cluster, NODES[0]) == {"power": "on", "agent": "up"}


def test_nothing_else_is_done_to_power(cluster, capsys):
    assert typed(capsys, "power", "hung", "n1")[0] == USAGE
