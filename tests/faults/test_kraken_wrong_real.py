"""The same catalogue of wrong behaviour (W1 to W19), where its faults are of real parts."""

import json
from typing import Any

import pytest

from haptera.api.routes.stream import STREAMS_MAX
from haptera.daemon.settings import API_PORT
from tests.cli.rig import client_of
from tests.faults.rig import PARENT_HOST, WEB, Parent
from tests.faults.seen import WITHIN_S, desire, view
from tests.kills.processes import kill, wait_for
from tests.kills.rig import NODES, Lab

pytestmark = [pytest.mark.net, pytest.mark.slow]

NODE = NODES[0]


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
