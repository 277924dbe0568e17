"""What is seen of a lab from outside, to be the same after a fault as before it."""

from tests.kills.rig import NODES, Lab


def power_commands(lab: Lab) -> dict[str, int]:
    """How many power commands each node's BMC was ever sent, by its own file."""
    return {node: lab.commands(node).read_text().count('"verdict"') for node in NODES}


def services_of(lab: Lab) -> dict[str, int]:
    """The pid of each node's service, those that run."""
    running = {node: lab.service(node) for node in NODES}
    return {node: one.pid for node, one in running.items() if one is not None}


def agents_of(lab: Lab) -> dict[str, int]:
    return {node: lab.agent(node).pid for node in NODES}
