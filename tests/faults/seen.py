"""What is seen of a lab from outside, and done to it: to be the same after a fault as before."""

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from haptera.keeping.gate import enter, gate_path
from tests.kills.processes import wait_for
from tests.kills.rig import NODES, Lab

WITHIN_S = 60
HEALED_WITHIN_S = 60


def power_commands(lab: Lab) -> dict[str, int]:
    """How many power commands each node's BMC was ever sent, by its own file."""
    return {node: lab.commands(node).read_text().count('"verdict"') for node in NODES}


def services_of(lab: Lab) -> dict[str, int]:
    """The pid of each node's service, those that run."""
    running = {node: lab.service(node) for node in NODES}
    return {node: one.pid for node, one in running.items() if one is not None}


def agents_of(lab: Lab) -> dict[str, int]:
    return {node: lab.agent(node).pid for node in NODES}


@contextmanager
def job(lab: Lab, node: str) -> Iterator[None]:
    """A job on this node, which is this process itself: it has gone in by the node's gate."""
    path = gate_path(lab.root / "nodes" / node / "run")
    gate = wait_for("the gate is open", lambda: enter(path), WITHIN_S)
    try:
        busy_is(lab, node, "busy")
        yield
    finally:
        os.close(gate)


def busy_is(lab: Lab, node: str, value: str) -> None:
    """The parent comes to know this of the node."""

    def told() -> bool:
        busy = view(lab, f"node:{node}")["observed"].get("busy")
        return busy is not None and (busy["value"], busy["known"]) == (value, True)

    wait_for(f"{node} is {value}", told, WITHIN_S)


def view(lab: Lab, entity: str) -> Any:
    with closing(lab.api()) as api:
        answer = api.ask("GET", f"/v1/entities/{entity}")
    assert answer is not None
    assert answer[0] == 200, answer
    return answer[2]


def healed(lab: Lab) -> None:
    """All comes to be as desired."""
    with closing(lab.api()) as api:
        wait_for("all is as desired", lambda: not lab.unhealed(api), HEALED_WITHIN_S)


def applied(lab: Lab, site: str) -> None:
    """Apply this site file, as its owner would."""
    constants = json.loads((lab.root / "client.json").read_bytes())["constants"]
    with closing(lab.api()) as api:
        body = {"files": [{"text": site, "name": "site.yaml"}], "constants": constants}
        answer = api.ask("POST", "/v1/apply", body)
    assert answer is not None
    assert answer[0] == 200, answer


def desire(lab: Lab, entity: str, **values: str | int | None) -> None:
    """Desire this of an entity, or (None) nothing any more."""
    with closing(lab.api()) as api:
        answer = api.ask("PATCH", f"/v1/entities/{entity}/desired", values)
    assert answer is not None
    assert answer[0] == 200, answer
