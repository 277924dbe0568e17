"""The catalogue of the provisioning stack (L1 to L20), where nodes are busy: in a real lab."""

import pytest

from tests.faults.seen import (
    WITHIN_S,
    agents_of,
    applied,
    busy_is,
    healed,
    job,
    power_commands,
    services_of,
    view,
)
from tests.kills.processes import kill, read_process, wait_for
from tests.kills.rig import NODES, Lab

pytestmark = [pytest.mark.net, pytest.mark.slow]

NODE = NODES[0]


def test_an_image_that_dies_on_a_busy_node_is_started_again(lab: Lab) -> None:
    """L1, L3: its error stayed for good; a busy node was not mended until declared free by hand."""
    before, agents, first = power_commands(lab), agents_of(lab), services_of(lab)[NODE]
    with job(lab, NODE):
        kill(wait_for("a service runs", lambda: lab.service(NODE), WITHIN_S))
        healed(lab)
        assert services_of(lab)[NODE] != first
        assert view(lab, f"service:web@{NODE}")["error"] is None
        busy_is(lab, NODE, "busy")
    assert (power_commands(lab), agents_of(lab)) == (before, agents)


def test_a_node_that_loses_its_power_with_its_jobs_works_again_and_is_free(lab: Lab) -> None:
    """L4, L5: noticed after 17 to 30 s; its agent was told that it was busy, and stayed so."""
    before, first = power_commands(lab), services_of(lab)[NODE]
    with job(lab, NODE):
        lab.cut(NODE)
        wait_for("it is off", lambda: not read_process(first), WITHIN_S)
    healed(lab)
    busy_is(lab, NODE, "free")
    assert power_commands(lab) == before | {NODE: before[NODE] + 2}


def test_a_busy_node_is_switched_off_when_its_jobs_are_over_and_not_before(lab: Lab) -> None:
    """L15: power actions raced with the news that a node was busy, which took up to 10 s."""
    site = (lab.directory / "site.yaml").read_text()
    every, others = "rack[1-2]n[1-3]: {power", "rack1n[2-3],rack2n[1-3]: {power"
    off = f"{site.replace(every, others)}"
    off = off.replace("desired:\n", f"desired:\n  {NODE}: {{power: off}}\n")
    before = power_commands(lab)
    with job(lab, NODE):
        applied(lab, off)
        wait_for(
            "it says why",
            lambda: "1 job runs" in (view(lab, f"node:{NODE}")["why"] or ""),
            WITHIN_S,
        )
        assert power_commands(lab) == before
    wait_for("it is off", lambda: view(lab, f"node:{NODE}")["condition"] == "converged", WITHIN_S)
    assert view(lab, f"node:{NODE}")["observed"]["power"]["value"] == "off"
    assert power_commands(lab) == before | {NODE: before[NODE] + 1}

    applied(lab, site)
    healed(lab)
    assert power_commands(lab) == before | {NODE: before[NODE] + 2}
