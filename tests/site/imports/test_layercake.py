"""Layercake's state files: nodes by name, what they should be, and all that has no place here."""

import json

import pytest

from haptera.model.errors import HapteraError
from haptera.rest.schemas import SiteFile
from haptera.site.imports.layercake import read_layercake
from tests.site.imports.reading import PLANTED, nothing_planted, said, seed, site_of

PARENT, ONE = "123e4567-e89b-12d3-a456-426655440000", "123e4567-e89d-12d3-a456-426655440001"


def state(*nodes, **more):
    return SiteFile("state.json", json.dumps({"nodes": nodes, **more}))


def node(name, number=1, **more):
    return {"id": f"{ONE[:-1]}{number}", "parentId": PARENT, "nodename": name, **more}


def test_a_state_file_is_nodes_with_addresses_and_desires_nothing():
    found = read_layercake(seed("state.json"), manage=False)

    assert site_of(found) == {
        "kr1": (
            {"platform": "vbox", "address": "10.11.12.11", "mac": "aa:bb:cc:00:11:01"},
            {},
        ),
        "kr2": (
            {"platform": "powerapi", "address": "10.11.12.12", "mac": "aa:bb:cc:00:11:02"},
            {},
        ),
    }
    assert nothing_planted(found)


def test_managed_it_desires_what_the_file_does():
    site = site_of(read_layercake(seed("state.json"), manage=True))

    assert {name: desired for name, (_, desired) in site.items()} == {
        "kr1": {"power": "on", "agent": "up"},
        "kr2": {"agent": "up"},
    }


def test_all_that_is_not_in_the_site_is_told():
    assert said(read_layercake(seed("state.json"), manage=False)) == [
        ("twice", "an id is there twice; the first node was taken", "kr2", "13:5"),
        ("secret", "secret of extension ImageAPI.ImageSet", "kr2", "12:123"),
        ("left out", "arch", "kr1", "5:152"),
        ("left out", "eth iface of an interface", "kr1", "kr2", "7:93"),
        ("left out", "eth mtu of an interface", "kr1", "7:127"),
        ("left out", "eth control of an interface", "kr1", "7:144"),
        ("left out", "ip subnet of an interface", "kr1", "kr2", "7:186"),
        ("left out", "extension proto.VBox", "kr1", "8:8"),
        ("left out", "physState PHYS_HANG", "kr2", "9:143"),
        ("left out", "extension ImageAPI.ImageSet", "kr2", "12:8"),
        ("note", "a node is the parent's own, and left out", "3:5"),
        ("note", "runState SYNC is not desired", "kr1", "kr2", "5:99"),
        ("note", "physState POWER_ON is not desired", "kr1", "5:119"),
    ]


def test_names_and_ids_that_are_there_twice_are_told():
    found = read_layercake(
        state(node("a", 1), node("a", 2), node("b", 1), {"id": PARENT}), manage=False
    )

    assert sorted(site_of(found)) == ["a"]
    assert [one[:3] for one in said(found)] == [
        ("conflict", "nodes of one name; the first was taken", "a"),
        ("twice", "an id is there twice; the first node was taken", "b"),
        ("note", "a node is the parent's own, and left out", "1:363"),
    ]


def test_a_node_without_a_name_is_called_by_its_id():
    found = read_layercake(state({"id": "Ej5FZ+idEtOkVkJUVUQAlg=="}), manage=False)

    assert sorted(site_of(found)) == [
        "123e4567-e89d-12d3-a456-426554550096".replace("426554550096", "425455440096")
    ]


def test_a_node_without_name_or_id_and_what_is_there_in_two_spellings_are_told():
    found = read_layercake(
        state(
            {"nodename": "n1", "phys_state": "POWER_ON", "physState": "POWER_OFF"}, {"arch": "x"}
        ),
        manage=True,
    )

    assert site_of(found) == {"n1": ({}, {"power": "on"})}
    assert [one[:2] for one in said(found)] == [
        ("twice", "physState is phys_state, which was taken"),
        ("left out", "a node has neither a name nor an id"),
    ]


@pytest.mark.parametrize(
    ("more", "desired"),
    [
        ({"phys_state": 1, "run_state": 2}, {"power": "off", "agent": "up"}),
        ({"physState": "POWER_OFF", "runState": "INIT"}, {"power": "off"}),
        ({"physState": "PHYS_UNKNOWN"}, {}),
        ({"physState": None}, {}),
        ({"physState": {"a": 1}, "runState": PLANTED}, {}),
    ],
)
def test_states_are_read_by_name_or_number(more, desired):
    found = read_layercake(state(node("n1", **more)), manage=True)

    assert site_of(found) == {"n1": ({}, desired)}
    assert nothing_planted(found)


@pytest.mark.parametrize(
    ("ifaces", "address"),
    [
        ({"other": {"ip": {"ip": "10.0.0.1"}}, "kraken": {"ip": {"ip": "10.0.0.2"}}}, "10.0.0.2"),
        ({"other": {"ip": {"ip": "10.0.0.1"}}, "more": {"ip": {"ip": "10.0.0.2"}}}, "10.0.0.1"),
        ([{"ip": {"ip": "CgAAAw=="}}], "10.0.0.3"),
        ([{"ip": {"ip": "fd00::1"}}], "fd00::1"),
        ([{"ip": {"ip": "nowhere"}}], None),
    ],
)
def test_the_address_is_that_of_the_interface_that_layercake_looks_at(ifaces, address):
    extension = {"@type": "type.googleapis.com/IPv4.IPv4OverEthernet", "ifaces": ifaces}
    found = read_layercake(state(node("n1", extensions=[extension])), manage=False)

    attributes, _ = site_of(found)["n1"]
    assert attributes.get("address") == address
    assert ("left out" in [one[0] for one in said(found)]) is (address is None or len(ifaces) > 1)


@pytest.mark.parametrize("text", ["[]", "7"])
def test_what_is_no_state_file_is_refused(text):
    with pytest.raises(HapteraError, match="it is not a state file"):
        read_layercake(SiteFile("state.json", text), manage=False)


def test_who_names_a_file_of_another_form_is_told_which_it_is():
    with pytest.raises(HapteraError) as refused:
        read_layercake(SiteFile("state.yaml", "nodes: []"), manage=False)
    assert refused.value.do == 'correct the JSON, or name a state file: {"nodes": [...]}'
