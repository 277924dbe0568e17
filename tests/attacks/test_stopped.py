"""A process that stands still for a while (SIGSTOP) and goes on: nothing is disturbed by that."""

import pytest

from tests.faults.seen import WITHIN_S, agents_of, healed, power_commands, services_of, view
from tests.kills.processes import kill, wait_for
from tests.kills.rig import NODES, Lab, stopped

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(480)]

NODE = NODES[0]
LOST_WITHIN_S = 60


def test_a_parent_that_stands_still_is_not_needed_and_disturbs_nothing_after(lab: Lab) -> None:
    before, agents, first = power_commands(lab), agents_of(lab), lab.service(NODE)
    assert first is not None
    with stopped(lab.parent()):
        kill(first)
        wait_for("the agent mends it alone", lambda: lab.service(NODE), WITHIN_S)
    healed(lab)
    assert (power_commands(lab), agents_of(lab)) == (before, agents)


def test_an_agent_that_stands_still_is_lost_and_its_node_left_alone(lab: Lab) -> None:
    before, services, agents = power_commands(lab), services_of(lab), agents_of(lab)

    def lost() -> bool:
        return not view(lab, f"service:web@{NODE}")["observed"]["run"]["known"]

    with stopped(lab.agent(NODE)):
        wait_for("it is lost", lost, LOST_WITHIN_S)
    healed(lab)
    assert (power_commands(lab), services_of(lab), agents_of(lab)) == (before, services, agents)
