"""The values for replicas by their channels, and the words on those that cannot be."""

import msgspec

from haptera.controllers.group_channels import hearing_fault
from haptera.controllers.groups import decide
from tests.controllers.test_groups import OWNER, RUNS, a_group, a_node, a_view

SERVER = {"command": "serve", "port": 4222, "replicas": 1, "leader": "none"}


def a_carrier(*, runs_on=None):
    there = [a_view("group:streams", **SERVER)]
    if runs_on is not None:
        name = f"replica:streams.0@{runs_on}"
        there.append(a_view(name, RUNS, run="running", command="serve", port=4222, placement=1))
    return there


def decided(*views):
    return decide({view.entity: view for view in views}, OWNER, 0.0)


def test_replicas_are_told_where_the_replicas_of_their_carrier_are():
    ledger = a_group(hears="feed", carrier="streams", recover="wait")
    feed = a_view("group:feed", command="feed", replicas=0, leader="none", carrier="streams")

    found = decided(a_node("n1"), ledger, feed, *a_carrier(runs_on="n1"))

    assert found.desired["replica:ledger.0@n1"] == {
        "command": "serve",
        "hears": "feed",
        "recover": "wait",
        "carriers": "n1:4222",
        "run": "running",
        "placement": 1,
    }


def test_a_carrier_at_an_address_of_ipv6_is_told_with_brackets():
    server = msgspec.structs.replace(a_node("n1"), attributes={"address": "fd00::1"})

    found = decided(server, a_group(carrier="streams"), *a_carrier(runs_on="n1"))

    assert found.desired["replica:ledger.0@n1"]["carriers"] == "[fd00::1]:4222"


def test_without_a_leader_each_replica_speaks_for_itself():
    ledger = a_group(carrier="streams", leader="none")

    found = decided(a_node("n1"), ledger, *a_carrier(runs_on="n1"))

    assert found.desired["replica:ledger.0@n1"]["voice"] == "alone"


def test_a_group_is_begun_once_its_carrier_is_placed():
    found = decided(a_node("n1"), a_group(carrier="streams"), *a_carrier())

    assert list(found.declare) == ["replica:streams.0@n1"]
    assert found.desired["group:ledger"] == {"says": "it waits for its carrier streams"}


def test_a_carrier_that_cannot_be_is_named():
    for carrier, says in (
        ("none", "its carrier none is no group"),
        ("old", "its carrier old has no port"),
    ):
        old = a_view("group:old", command="serve", replicas=0)
        found = decided(a_node("n1"), a_group(carrier=carrier), old)
        assert found.desired["group:ledger"] == {"says": says}


def test_a_group_hears_neither_itself_nor_what_is_not_there():
    def fault(**heard):
        groups = {
            name: a_view(f"group:{name}", command="serve", hears=others)
            for name, others in heard.items()
        }
        return hearing_fault("a", groups)

    assert fault(a="b, c", b="c", c="") == ""
    assert fault(a="a") == "it hears itself"
    assert fault(a="b", b="c", c="a") == "it hears itself over c"
    assert fault(a="b", b="gone") == "gone, which b hears, is no group"
