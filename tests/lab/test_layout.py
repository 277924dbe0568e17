"""What a lab is made of: nodes from a site, addresses, clusters."""

from pathlib import Path
from uuid import UUID

import pytest

from haptera.lab.layout import LabConfig, LabNode, Places, octet, open_cluster
from haptera.lab.orders import GivenFaults, Lie
from haptera.lab.settings import lab_nodes
from haptera.model.errors import HapteraError

NODES = {
    name: {
        "platform": "labnode",
        "rack": f"r{rack}",
        "address": f"127.9.1.{n}",
        "bmc": f"127.9.2.{n}:4280",
    }
    for n, (name, rack) in enumerate([("a1", 1), ("a2", 1), ("b1", 2), ("c1", 3)], start=1)
}


def test_nodes_take_their_manners_from_the_settings_and_boot_rack_by_rack() -> None:
    settings = {"refuse": {"a[1-2]": "no"}, "delay_ms": "200", "delay_rack_ms": "1000"}
    assert lab_nodes({**NODES, "real": {"platform": "redfish"}}, settings) == (
        LabNode("a1", "127.9.1.1", "127.9.2.1:4280", 200, 0, "no"),
        LabNode("a2", "127.9.1.2", "127.9.2.2:4280", 200, 0, "no"),
        LabNode("b1", "127.9.1.3", "127.9.2.3:4280", 200, 1000),
        LabNode("c1", "127.9.1.4", "127.9.2.4:4280", 200, 2000),
    )


def test_bmcs_misbehave_as_they_are_told_the_last_word_for_a_node_counting() -> None:
    faults = {"a[1-2]": {"silent": "true"}, "a2": {"lies": "flaps", "delay_ms": "5000"}}
    nodes = {node.name: node.faults for node in lab_nodes(NODES, {"bmc": faults})}
    assert nodes["a1"] == GivenFaults(silent=True)
    assert nodes["a2"] == GivenFaults(lies=Lie.FLAPS, delay_ms=5000)
    assert nodes["b1"] == GivenFaults()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"delay": "1"}, "site file, lab: Object contains unknown field `delay`"),
        # A labnode step declares that its effect comes within two seconds.
        ({"delay_ms": "2000"}, "site file, lab: Expected `int` <= 1800"),
        ({"delay_ms": "soon"}, "site file, lab: Expected `int`"),
        ({"refuse": {"z1": "no"}}, "site file, lab.refuse: there is no node z1"),
        ({"bmc": {"z1": {}}}, "site file, lab.bmc: there is no node z1"),
        ({"bmc": {"a1": {"lies": "much"}}}, "site file, lab: Invalid enum value 'much'"),
    ],
)
def test_settings_that_cannot_be_are_told(settings: dict[str, object], said: str) -> None:
    with pytest.raises(HapteraError) as error:
        lab_nodes(NODES, settings)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"bmc": "127.9.2.1:4280"}, "node a1: has no address"),
        ({"address": "10.0.0.1", "bmc": "127.9.2.1:4280"}, "node a1, address: '10.0.0.1' is not a"),
        (
            {"address": "127.9.1.1", "bmc": "127.9.2.1"},
            "node a1, bmc: '127.9.2.1' is not AD",
        ),
        ({"address": "127.9.1.1", "bmc": "127.9.2.1:70000"}, "node a1, bmc: '127.9.2.1:70000' is"),
    ],
)
def test_a_node_without_a_proper_address_is_told(attributes: dict[str, str], said: str) -> None:
    with pytest.raises(HapteraError) as error:
        lab_nodes({"a1": {"platform": "labnode", **attributes}}, {})
    assert str(error.value).startswith(said)


def test_two_nodes_of_one_address_are_no_lab(tmp_path: Path) -> None:
    nodes = (
        LabNode("a", "127.9.1.1", "127.9.2.1:4280"),
        LabNode("b", "127.9.1.1", "127.9.2.2:4280"),
    )
    with pytest.raises(HapteraError, match=r"two nodes have the address 127\.9\.1\.1"):
        LabConfig(tmp_path, UUID(int=8), nodes)


@pytest.mark.net
def test_a_cluster_keeps_its_uuid(tmp_path: Path) -> None:
    places = Places(tmp_path)
    cluster = open_cluster(places)
    assert open_cluster(places) == cluster
    assert 1 <= octet(cluster) <= 254
    assert LabConfig(tmp_path, cluster, ()).parent_address == f"127.{octet(cluster)}.0.1"


def test_a_spoilt_cluster_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / ".haptera" / "lab" / "cluster"
    file.parent.mkdir(mode=0o700, parents=True)
    file.write_text("quickstart\n")
    with pytest.raises(HapteraError, match="cluster: holds no UUID"):
        open_cluster(Places(tmp_path))
