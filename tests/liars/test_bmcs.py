"""BMCs that lie, each in its own way, in one lab with honest ones: where each of them ends."""

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kills import checker
from tests.kills.processes import wait_for
from tests.kills.rig import Lab
from tests.kills.writer import Api

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.campaign, pytest.mark.timeout(480)]

SITE = """
cluster: liars
nodes:
  {nodes}:
    platform: labnode
    address: "127.{{{{x}}}}.1.{{{{index}}}}"
    bmc: "127.{{{{x}}}}.2.{{{{index}}}}:4280"
services:
  web: {{{{command: '"{{{{python}}}}" {{web}}'}}}}
desired:
  {nodes}: {{{{power: on, agent: up}}}}
  web@honest1,honest2: {{{{run: running}}}}
policies:
  - for: "node:*"
    parts: labnode.switch_on
    attempts: 3
    back_off: 200ms
    back_off_max: 400ms
    cool_down: 10m
lab:
  delay_ms: 200
  bmc: {faults}
"""
ENDS_WITHIN_S = 150
HONEST_WITHIN_S = 60
HONEST = ("honest1", "honest2")
# What the site's policy allows in a row, and what may be done again in ten minutes of what works
# but does not last (`core/state/limits.py`).
ATTEMPTS, AGAIN = 3, 4
GIVEN_UP = "; given up after 3 attempts, for 10 min"


@dataclass(frozen=True)
class Liar:
    """How a BMC misbehaves, how its node ends, and how many commands it may get for that."""

    faults: dict[str, Any]
    condition: str
    why: str | None
    commands_max: int


INTERLOCK = "chassis interlock is open"
LIARS = {
    "late": Liar({"delay_ms": 3500}, "converged", None, ATTEMPTS),
    "silent": Liar(
        {"silent": True}, "stuck", "labnode.look_power: BMC at {bmc} does not answer", 0
    ),
    "refuses": Liar(
        {"refuse": INTERLOCK}, "stuck", f"labnode.switch_on: {INTERLOCK}{GIVEN_UP}", ATTEMPTS
    ),
    "idle": Liar(
        {"lies": "idle"},
        "stuck",
        f"labnode.switch_on: returned, but power is off{GIVEN_UP}",
        ATTEMPTS,
    ),
    "astray": Liar({"lies": "astray"}, "stuck", "nothing heard from the agent for 1 min", 1),
    "flaps": Liar(
        {"lies": "flaps"},
        "stuck",
        "labnode.switch_on was repeated several times: its effect does not last",
        AGAIN + 3,
    ),
    "resets": Liar({"lies": "resets"}, "converged", None, 1),
}


def test_each_lying_bmc_ends_in_a_named_state_in_as_few_commands_as_its_policy_allows(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path, site())
    with lab.running():
        with closing(lab.api()) as api:
            wait_for("the honest converge", lambda: honest_stand(api), HONEST_WITHIN_S)
            left = dict(LIARS)
            wait_for("each liar ends", lambda: all_ended(api, left), ENDS_WITHIN_S)
            assert honest_stand(api)
        assert lab.stop() == 0
    counts = {name: len(commands(lab, name)) for name in (*LIARS, *HONEST)}
    assert {
        name: count
        for name, count in counts.items()
        if count > (LIARS[name].commands_max if name in LIARS else 1)
    } == {}
    assert lab.leftovers() == []


def site() -> str:
    faults = {name: liar.faults for name, liar in LIARS.items()}
    nodes = ",".join((*LIARS, *HONEST))
    return SITE.format(nodes=nodes, faults=json.dumps(faults).replace("{", "{{").replace("}", "}}"))


def all_ended(api: Api, left: dict[str, Liar]) -> bool:
    """Whether each was seen where it ends; taken out of `left` as it is, for an honest failure."""
    for entity, view in told(api).items():
        liar = left.get(view["name"])
        if liar is not None and entity.startswith("node:"):
            why = liar.why and liar.why.format(bmc=view["attributes"]["bmc"])
            if (view["condition"], view["why"]) == (liar.condition, why):
                del left[view["name"]]
    return not left


def honest_stand(api: Api) -> bool:
    entities = [entity for name in HONEST for entity in (f"node:{name}", f"service:web@{name}")]
    views = told(api)
    return all(one in views and views[one]["condition"] == "converged" for one in entities)


def told(api: Api) -> dict[str, Any]:
    answer = api.ask("GET", "/v1/entities")
    assert answer is not None, "the API does not answer"
    return {view["entity"]: view for view in answer[2]["entities"]}


def commands(lab: Lab, node: str) -> list[Any]:
    """All commands that the node's BMC was sent, by its own file."""
    return [row for row in checker.read_rows(lab.commands(node)) if "verdict" in row]
