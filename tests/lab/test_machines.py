"""Which virtual machines a lab makes of a site, and what it asks of the machine that it runs on."""

import shutil
import subprocess
from ipaddress import IPv4Interface

import pytest

from haptera.lab.bridge import Bridge, check_here
from haptera.lab.layout import LabMachine
from haptera.lab.machine import MachineConfig, network_card
from haptera.lab.machine_bmc import Language, MachineBmcConfig, Nic
from haptera.lab.settings import lab_bridge, lab_machines, lab_nodes
from haptera.model.errors import HapteraError

BRIDGE = {"bridge": {"address": "10.99.0.1/24"}}
NODES = {
    "n1": {"platform": "ipmi", "mac": "52:54:00:00:01:0A", "bmc": "127.7.2.1:623"},
    "n2": {"platform": "labnode", "address": "127.7.1.2", "bmc": "127.7.2.2:4280"},
}


def test_nodes_behind_ipmi_are_machines_where_there_is_a_bridge() -> None:
    assert lab_machines(NODES, BRIDGE) == (
        LabMachine("n1", "52:54:00:00:01:0a", "127.7.2.1:623", 512),
    )
    assert lab_machines(NODES, {}) == ()
    assert [one.name for one in lab_nodes(NODES, BRIDGE)] == ["n2"]


def test_the_bridge_is_the_parents_address_in_a_network() -> None:
    assert lab_bridge({}) is None
    assert lab_bridge(BRIDGE) == Bridge("br0", IPv4Interface("10.99.0.1/24"))
    with pytest.raises(HapteraError, match="'here' is not an address in a network"):
        lab_bridge({"bridge": {"address": "here"}})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"mac": "52:54"}, "is not a MAC address"),
        ({"bmc": "10.0.0.1:623"}, "is not a loopback address"),
        ({"mac": None}, "has no mac"),
    ],
)
def test_a_machine_that_cannot_be_is_named(change: dict[str, str | None], text: str) -> None:
    said = NODES["n1"] | change
    given = {name: value for name, value in said.items() if value is not None}
    with pytest.raises(HapteraError, match=text):
        lab_machines({"n1": given}, BRIDGE)


def test_memory_has_limits() -> None:
    with pytest.raises(HapteraError, match="64 MB are not between 128 and 16384"):
        lab_machines(NODES, BRIDGE | {"memory_mb": 64})


def test_all_that_is_missing_is_told_in_one_line() -> None:
    with pytest.raises(HapteraError) as told:
        check_here((), {"no-such-tool": "one", "no-such-other": "two"})
    assert told.value.do in ("apt install one two", "run it as root")


def test_machines_have_a_bios_unless_they_are_named() -> None:
    nodes = NODES | {"n3": NODES["n1"] | {"mac": "52:54:00:00:01:0b"}}
    made = lab_machines(nodes, BRIDGE | {"uefi": "n3"})
    assert [(one.name, one.uefi) for one in made] == [("n1", False), ("n3", True)]
    with pytest.raises(HapteraError, match="there is no node n2 of platform ipmi"):
        lab_machines(nodes, BRIDGE | {"uefi": "n2"})


def test_machines_have_the_network_cards_that_are_named() -> None:
    nodes = NODES | {"n3": NODES["n1"] | {"mac": "52:54:00:00:01:0b"}}
    made = lab_machines(nodes, BRIDGE | {"nic": {"n3": "e1000e"}})
    assert [(one.name, one.nic) for one in made] == [("n1", Nic.VIRTIO), ("n3", Nic.E1000E)]
    with pytest.raises(HapteraError, match="Invalid enum value 'mlx5'"):
        lab_machines(nodes, BRIDGE | {"nic": {"n3": "mlx5"}})
    with pytest.raises(HapteraError, match="there is no node n2 of platform ipmi"):
        lab_machines(nodes, BRIDGE | {"nic": {"n2": "e1000"}})


@pytest.mark.parametrize("nic", Nic)
def test_qemu_knows_each_network_card(nic: Nic) -> None:
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is missing: apt install qemu-system-x86")
    bmc = MachineBmcConfig(Language.IPMI, "n1", "a" * 32, "127.7.2.1", 623, "user", "file")
    config = MachineConfig("n1", "52:54:00:00:01:0a", "p1", 512, False, nic, bmc, "d", "l")
    model, _, rest = network_card(config).partition(",")
    assert rest == "netdev=card,mac=52:54:00:00:01:0a"
    known = ["qemu-system-x86_64", "-device", f"{model},help"]
    assert "mac=" in subprocess.run(known, capture_output=True, text=True, check=True).stdout
