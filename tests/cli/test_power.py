"""`haptera power`: off, on and cycle do what operators mean, whoever desires what."""

import pytest

from haptera.cli.main import NOT_CONVERGED, OK, REFUSED, USAGE
from haptera.model.answers.views import Condition, LinkView, ObservedView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from tests.api.serving import serving
from tests.cli.test_commands import point_at, typed

pytestmark = pytest.mark.net
ON = ObservedView("on", known=True, method="read", by="lab", age_ms=1_000)
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


def dead_end(cluster, node):
    """Of what disturbs this node nothing begins, for nobody is heard that could permit it."""
    off = LinkView("lab.off", "brings power to off", "parent", disruptive=True)
    waits = {"condition": Condition.WAITING, "why": "lab.off waits: silent", "chain": [off]}
    cluster.do(cluster.backend.say, node, **waits)


def test_a_cycle_that_would_wait_for_good_is_refused_with_the_way_out(cluster, capsys):
    dead_end(cluster, NODES[0])
    code, out, err = typed(capsys, "power", "cycle", "n[1-2]", "-m", "it hangs")
    assert (code, out) == (REFUSED, "")
    assert err == (
        "error: no agent is heard on n1 that could permit this: it might wait for good, and nothing"
        " was written\n"
        "  if no work can be lost there: haptera power cycle 'n[1-2]' --override --why TEXT; else"
        " see why: haptera why n1\n"
    )
    assert [wanted(cluster, node) for node in NODES] == [{"power": "on", "agent": "up"}] * 2


def test_who_says_why_overrides_the_permits_of_those_that_are_silent_only(
    cluster, capsys, monkeypatch, tmp_path
):
    dead_end(cluster, NODES[0])
    assert typed(capsys, "power", "cycle", "n*", "--override")[0] == USAGE
    assert cluster.backend.overridden == []
    point_at(cluster.url, "admin-token", monkeypatch, tmp_path)
    typed(capsys, "power", "cycle", "n*", "--override", "-m", "it hangs", "--timeout", "1s")
    assert cluster.backend.overridden == ["n1"]


def test_a_cycle_that_is_not_off_in_time_takes_back_what_it_desired(cluster, capsys):
    cluster.do(cluster.backend.say, NODES[0], observed={"power": ON})
    before = {**cluster.backend.store[NODES[0]].desired}
    code, _, err = typed(capsys, "power", "cycle", "n1", "--timeout", "1s")
    assert (code, "what was desired before is desired again" in err) == (NOT_CONVERGED, True)
    assert cluster.backend.store[NODES[0]].desired == before


def test_a_cycle_that_wrote_nothing_takes_nothing_back(cluster, capsys):
    assert typed(capsys, "power", "off", "n1")[0] == OK
    cluster.do(cluster.backend.say, NODES[0], observed={"power": ON})
    code, _, err = typed(capsys, "power", "cycle", "n1", "--timeout", "1s")
    assert (code, "desired again" in err) == (NOT_CONVERGED, False)
    assert wanted(cluster, NODES[0]) == {"power": "off"}


def test_how_the_power_of_nodes_is_is_shown(cluster, capsys):
    cluster.do(cluster.backend.say, NODES[0], observed={"power": ON})
    typed(capsys, "power", "off", "n2")
    cluster.do(cluster.backend.say, NODES[1], observed={})
    assert typed(capsys, "power", "status", "n*")[1] == (
        "NODE  POWER    READ   DESIRED\nn1    on       1.0 s  on\nn2    unknown         off\n"
    )
    assert typed(capsys, "power", "status", "n9")[0] == REFUSED
