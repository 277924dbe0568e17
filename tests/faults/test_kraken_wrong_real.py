"""The same catalogue of wrong behaviour (W1 to W19), where its faults are of real parts."""

import json
from typing import Any

import pytest

from haptera.api.routes.stream import STREAMS_MAX
from haptera.daemon.settings import API_PORT
from tests.cli.rig import client_of
from tests.faults.rig import PARENT_HOST, WEB, Child, Parent
from tests.faults.seen import WITHIN_S, desire, view
from tests.kills.processes import kill, wait_for
from tests.kills.rig import NODES, Lab

pytestmark = [pytest.mark.net, pytest.mark.slow]

NODE = NODES[0]


def test_events_come_in_the_order_in_which_things_happened(served: Parent) -> None:
    """W8: up to a tenth of all events came after a later one, even with an idle listener."""
    with served.listening() as listener:
        for port in range(9000, 9300):
            served.desire(WEB, port=port)
        told = listener.until(lambda view: _port(view) == 9299)
    ports = [_port(view) for view in told if view["entity"] == str(WEB)]
    assert len(ports) > 3
    assert ports == sorted(ports, key=lambda port: port or 0)
    served.desire(WEB, port=None)


def test_an_event_holds_what_a_question_would_be_answered_with(served: Parent) -> None:
    """W9: events carried a value wrapped in a value, or `<invalid reflect.Value>`."""
    with served.listening() as listener:
        served.desire(WEB, port=9500)
        view = listener.until(lambda view: _port(view) == 9500)[-1]
    asked = served.view(str(WEB))
    for both in (view, asked):
        assert both["desired"]["port"]["value"] == 9500
        for timed in ("since_ms", "observed", "tried"):
            both.pop(timed)
    assert view == asked
    served.desire(WEB, port=None)


def test_other_settings_for_a_module_that_runs_begin_with_a_new_process(lab: Lab) -> None:
    """W10: nobody handed a running module the configuration that was changed."""
    first = lab.module(lab.parent(), "labnode")
    desire(lab, "module:labnode", settings='{"pace": "slow"}')
    wait_for("it is told", lambda: _stands(lab) == ("running", "current", "converged"), WITHIN_S)
    # The one before it may take a moment to end.
    wait_for("another runs", lambda: lab.module(lab.parent(), "labnode").pid != first.pid, WITHIN_S)
    desire(lab, "module:labnode", settings=None)


def test_a_module_is_shown_as_it_is_however_often_it_starts(lab: Lab) -> None:
    """W11: in 4 of 12 starts a service that served was shown in ERROR, and never in RUN."""
    owner = lab.agent(NODES[1])
    for _ in range(3):
        kill(lab.module(owner, "service"))
        lab.module(owner, "service")
        wait_for("it is shown", lambda: _run_of(lab, NODES[1]) == ("running", True), WITHIN_S)
    assert view(lab, "module:labnode")["observed"]["run"]["value"] == "running"


def test_the_first_address_that_is_told_is_the_right_one(served: Parent) -> None:
    """W12: the first to ask where the events are was told port 0."""
    client = json.loads(client_of(served.home).read_bytes())
    assert client["url"] == f"http://{PARENT_HOST}:{API_PORT}"
    assert served.ask("GET", "/v1/health")[1]["status"] == "ok"


def test_hanging_up_is_all_that_it_takes_to_listen_no_more(served: Parent) -> None:
    """W13: the documented way to unsubscribe subscribed once more."""
    for _ in range(STREAMS_MAX + 10):
        with served.listening() as listener:
            listener.until(lambda view: view["entity"] == "node:n2")


def test_an_empty_cluster_is_an_answer(served: Parent, child: Child) -> None:
    """W14: asked for a graph without edges, the daemon hung up."""
    whole = served.site("n1", "n2", "n3", "n4")
    assert served.apply(served.site())[0] == 200
    for query in ("nodes=n[1-3]", "kind=service", "kind=node&nodes=n1"):
        assert served.ask("GET", f"/v1/entities?{query}")[1]["entities"] == []
    assert served.ask("GET", "/v1/summary")[1]["counts"].keys() == {"module"}
    assert served.apply(whole)[0] == 200
    served.hears(child)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/entities?kind=nothing", 400),
        ("/v1/entities?nodes=n[1-", 400),
        ("/v1/entities/node:n99", 404),
        ("/v1/nothing", 404),
    ],
)
def test_an_error_has_the_status_of_one_and_says_what_to_do(
    served: Parent, path: str, status: int
) -> None:
    """W14: errors came with status 200, as text."""
    answer = served.ask("GET", path)
    assert (answer[0], answer[1]["status"]) == (status, status)
    assert answer[1]["what"]
    assert answer[1]["do"]


def test_what_a_request_does_not_name_stays_as_it_was(served: Parent) -> None:
    """W15: a PUT of one field wiped name, parent, extensions and states of the node."""
    before = served.view(str(WEB))
    served.desire(WEB, port=9600)
    after = served.view(str(WEB))
    assert after["desired"].pop("port")["value"] == 9600
    assert (after["desired"], after["attributes"]) == (before["desired"], before["attributes"])
    served.desire(WEB, port=None)


def test_of_many_changes_all_hold_or_none_and_each_that_cannot_is_named(served: Parent) -> None:
    """W15: bulk requests dropped the nodes that failed, and answered 200."""
    revision = served.ask("GET", "/v1/summary")[1]["revision"]
    wrong = (
        "cluster: faults\nnodes: {n1: {platform: labnode}, n5: {colour: red}, n6: {rack: one}}\n"
        "desired: {n6: {power: maybe}}\n"
    )
    status, problem = served.apply(wrong)
    assert status == 400
    assert [error["where"].partition(":")[0] for error in problem["errors"]] == ["site.yaml"] * 2
    assert served.ask("GET", "/v1/summary")[1]["revision"] == revision
    assert served.ask("GET", "/v1/entities/node:n6")[0] == 404


def test_a_module_that_crashes_is_started_again(lab: Lab) -> None:
    """W16: a module that ended with an error was never started again."""
    owners = [lab.parent(), lab.agent(NODE)]
    for owner, name in zip(owners, ("labnode", "service"), strict=True):
        for _ in range(2):  # the sixth death within ten minutes would be too many
            first = lab.module(owner, name)
            kill(first)
            assert lab.module(owner, name).pid != first.pid
    assert [lab.parent().pid, lab.agent(NODE).pid] == [owner.pid for owner in owners]


def test_nodes_are_asked_for_by_name_and_by_set(served: Parent) -> None:
    """W19: a query could name one node, by its UUID, or all."""
    for query, nodes in (("nodes=n2", ["n2"]), ("nodes=n[2-3],n9", ["n2", "n3"])):
        found = served.ask("GET", f"/v1/entities?kind=node&{query}")[1]["entities"]
        assert [one["name"] for one in found] == nodes


def _port(view: Any) -> int | None:
    held = view["desired"].get("port")
    return None if held is None else int(held["value"])


def _run_of(lab: Lab, node: str) -> tuple[str, bool]:
    run = view(lab, f"module:service@{node}")["observed"]["run"]
    return run["value"], run["known"]


def _stands(lab: Lab) -> tuple[str, str, str]:
    seen = view(lab, "module:labnode")
    run, applied = (seen["observed"].get(name, {}).get("value") for name in ("run", "applied"))
    return run, applied, seen["condition"]
