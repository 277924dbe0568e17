"""The same catalogue of the provisioning stack (L1 to L20), where its faults are of real parts."""

from typing import Any

import pytest

from tests.faults.rig import WEB, Child, Parent
from tests.faults.seen import (
    WITHIN_S,
    agents_of,
    busy_is,
    desire,
    healed,
    job,
    power_commands,
    services_of,
    view,
)
from tests.kills.processes import kill, wait_for
from tests.kills.rig import NODES, Lab

pytestmark = [pytest.mark.net, pytest.mark.slow]

NODE = NODES[0]


def test_a_parent_that_is_killed_comes_back_knowing_all_and_touching_nothing(lab: Lab) -> None:
    """L8: it cut the power of healthy busy nodes, and what was changed at run time was lost."""
    desire(lab, f"service:web@{NODE}", port=9300)
    healed(lab)
    before = power_commands(lab), services_of(lab), agents_of(lab)
    with job(lab, NODES[1]), job(lab, NODES[3]):
        for _ in range(3):
            kill(lab.parent())
            healed(lab)
        for node in (NODES[1], NODES[3]):
            busy_is(lab, node, "busy")
    assert (power_commands(lab), services_of(lab), agents_of(lab)) == before
    assert view(lab, f"service:web@{NODE}")["desired"]["port"]["value"] == 9300
    desire(lab, f"service:web@{NODE}", port=None)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"power": "unknown"}', "BMC reports no power state: Invalid enum value 'unknown'"),
        (b"", "BMC reports no power state: "),
        (b"\xff\xfe", "BMC reports no power state: "),
        (b"[" * 60_000, "BMC reports no power state: "),
        (b" " * 70_000, "BMC answers with 70000 bytes, more than 65536"),
        (None, "does not answer"),
    ],
)
def test_a_bmc_that_answers_rubbish_costs_no_other_node_its_power_control(
    served: Parent, child: Child, body: bytes | None, why: str
) -> None:
    """L11: a BMC that did not know its power ended the module of power for all nodes."""
    bmc, module = served.bmcs["n2"], served.module("labnode")
    bmc.body, bmc.silent = body, body is None
    try:
        wait_for(why, lambda: why in (served.looked_at("node:n2")["error"] or ""), WITHIN_S)
        assert served.view("node:n2")["observed"]["power"]["known"] is False
        looks = served.bmcs["n3"].looks
        wait_for("another is looked at", lambda: served.bmcs["n3"].looks > looks, WITHIN_S)
        assert served.view("node:n3")["observed"]["power"]["known"] is True
        assert served.module("labnode") == module
    finally:
        bmc.body, bmc.silent = None, False
    known = wait_for("it is read", lambda: _known(served.looked_at("node:n2")), WITHIN_S)
    assert known == "off"


def test_what_goes_between_parent_and_node_is_read_by_nobody_else(
    served: Parent, child: Child
) -> None:
    """L19: keys and state went over the network in clear."""
    canary = 54_321
    served.desire(WEB, port=canary)
    told = [
        update for message in child.hear_until(lambda m: m.updates) for update in message.updates
    ]
    assert any(getattr(update, "values", {}).get("port") == canary for update in told)
    served.hears(child)
    wire = b"".join(child.heard + child.sent)
    for plain in (b"web", b"running", canary.to_bytes(4, "big"), child.secret):
        assert plain not in wire
    served.desire(WEB, port=None)


def _known(view: Any) -> str | None:
    power = view["observed"]["power"]
    return str(power["value"]) if power["known"] else None
