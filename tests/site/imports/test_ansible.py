"""Ansible's inventories: hosts and groups as they are there, no secret with them."""

import json

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.rest.schemas import SiteFile
from haptera.selectors.nodeset import expand
from haptera.site.imports.ansible import read_ansible
from haptera.site.imports.remarks import RemarkSort
from tests.site.imports.reading import PLANTED, groups_of, nothing_planted, said, seed, site_of

RACKS = expand("rack1n[01-04],rack2n[01-04]")
STORES = ("oss1.example.org", "oss2.example.org")
OTHERS = {"address": "10.20.0.1", "groups": "all, ungrouped"}


def test_an_inventory_of_ansibles_own_is_read_whole():
    found = read_ansible(seed("inventory.json"), {"rack": "rack_id", "bmc": "bmc_address"})
    site = site_of(found)

    assert sorted(site) == sorted(["login", *STORES, *RACKS])
    assert site["rack2n03"] == (
        {
            "address": "10.20.2.3",
            "bmc": "10.30.2.3:623",
            "rack": "r2",
            "groups": "all, compute, cpu",
        },
        {},
    )
    assert site["login"] == (OTHERS, {})
    assert groups_of(found) == {
        "all": {"login", *STORES, *RACKS},
        "ungrouped": {"login"},
        "storage": set(STORES),
        "compute": set(RACKS),
        "cpu": {*RACKS[:4], *RACKS[6:]},
        "gpu": {*RACKS[4:6]},
    }
    assert nothing_planted(found)


def test_what_is_not_in_the_site_is_told():
    found = read_ansible(seed("inventory.json"), {"rack": "rack_id", "bmc": "bmc_address"})

    assert [one[:2] for one in said(found)] == [
        ("secret", "variable ansible_password"),
        ("secret", "vaulted variable database"),
        ("secret", "variable ansible_become_password"),
        ("left out", "variable ansible_python_interpreter"),
        ("left out", "variable motd"),
        ("left out", "variable ntp"),
        ("left out", "variable ansible_user"),
    ]
    ntp = next(one for one in found.remarks if one.what == "variable ntp")
    assert (tuple(ntp.nodes), ntp.do) == (STORES, "to make it an attribute: --attribute NAME=ntp")


def test_of_an_export_the_variables_of_groups_are_told_and_how_to_have_them():
    found = read_ansible(seed("inventory-export.json"), {})

    assert groups_of(found) == groups_of(read_ansible(seed("inventory.json"), {}))
    whole = {one.what: one.do for one in found.remarks}
    assert whole["variable ansible_user of group compute"] == (
        "import what `ansible-inventory --list` writes without --export"
    )
    assert ("secret", "variable ansible_become_password of group gpu") in [
        one[:2] for one in said(found)
    ]
    assert nothing_planted(found)


def test_what_cannot_stand_in_a_site_is_told_and_the_rest_is_there():
    inventory = {
        "_meta": {"hostvars": {"n1": {"ansible_host": "a b"}, "n 2": {}, "n3": 7}, "more": 1},
        "web": ["n1", "n4", []],
        "-odd": {"hosts": ["n1"]},
        "empty": {"hosts": []},
        "turn": {"children": ["turn", "web", "gone"], "colour": "red"},
    }
    found = read_ansible(SiteFile("i.json", json.dumps(inventory)), {})

    assert groups_of(found) == {"web": {"n1", "n4"}, "turn": {"n1", "n4"}}
    assert sorted(site_of(found)) == ["n1", "n3", "n4"]
    assert [one[:2] for one in said(found)] == [
        ("left out", "address: it is not an address"),
        ("left out", "node 'n 2' is not a name"),
        ("left out", "variables of a host: it is not a mapping"),
        ("left out", "_meta: more"),
        ("left out", "hosts of group web: one is not a text"),
        ("left out", "colour of group turn"),
        ("left out", "group -odd: '-odd' is not a name"),
        ("left out", "group empty: it has no nodes"),
        ("left out", "group gone: it has no nodes"),
    ]


@pytest.mark.parametrize(
    ("text", "address"),
    [("[2001:db8::2]", "2001:db8::2"), ("2001:db8::2", "2001:db8::2"), ("n1.example", "n1.example"),
     ("10.0.0.4:22", None), ("[2001:db8::2]:22", None), ("10.0.0.{{ index }}", None)],
)  # fmt: skip
def test_the_address_of_a_node_is_bare(text, address):
    inventory = {"_meta": {"hostvars": {"n1": {"ansible_host": text}}}, "web": {"hosts": ["n1"]}}
    found = read_ansible(SiteFile("i.json", json.dumps(inventory)), {})

    assert found.nodes["n1"].attributes.get("address") == address
    assert len(said(found)) == (address is None)


def unsafe(text):
    return {"__ansible_unsafe": text}


def test_a_text_that_is_marked_unsafe_is_that_text_wherever_it_stands():
    hosts = {
        "n1": {"ansible_host": unsafe("10.5.0.1"), "rack": unsafe("r1")},
        "n2": {"ansible_host": "10.5.0.2", "rack": "r1", "ansible_password": unsafe("planted")},
        "n3": {
            "ansible_host": {"__ansible_unsafe": ["10.5.0.3"]},
            "rack": {**unsafe("r1"), "a": "b"},
        },
    }
    inventory = {
        "_meta": {"hostvars": hosts},
        "web": {"hosts": ["n1", unsafe("n2")]},
        "site": {"children": [unsafe("web")], "vars": {"ntp": unsafe("10.0.0.1")}},
    }
    found = read_ansible(SiteFile("i.json", json.dumps(inventory)), {"rack": "rack"})

    assert site_of(found) == {
        "n1": ({"address": "10.5.0.1", "rack": "r1", "groups": "site, web"}, {}),
        "n2": ({"address": "10.5.0.2", "rack": "r1", "groups": "site, web"}, {}),
        "n3": ({}, {}),
    }
    assert [one[:2] for one in said(found)] == [
        ("secret", "variable ansible_password"),
        ("left out", "variable ansible_host"),
        ("left out", "variable rack"),
        ("left out", "variable ntp of group site"),
    ]
    assert nothing_planted(found)


def test_two_of_one_address_are_told():
    hosts = {f"n{at}": {"ansible_host": f"10.0.0.{at // 3}"} for at in range(1, 6)}
    found = read_ansible(SiteFile("i.json", json.dumps({"_meta": {"hostvars": hosts}})), {})

    assert [one[:-1] for one in said(found)] == [
        ("conflict", "address is that of n1, too", "n2"),
        ("conflict", "address is that of n3, too", "n4", "n5"),
    ]


@pytest.mark.parametrize("text", ["[]", "7", '"all"'])
def test_what_is_no_inventory_is_refused(text):
    with pytest.raises(HapteraError, match="it is not an inventory"):
        read_ansible(SiteFile("i.json", text), {})


@pytest.mark.parametrize("text", ["[web]\nn[1:2]\n", "all:\n  hosts: {n1: {}}\n", ""])
def test_who_names_an_inventory_of_another_form_is_told_how_to_have_it_as_json(text):
    with pytest.raises(HapteraError) as refused:
        read_ansible(SiteFile("hosts", text), {})
    assert refused.value.do == "correct the JSON, or write it by `ansible-inventory --list`"


HOSTS = ["login", *(f"r{rack}n{n}" for rack in (1, 2) for n in (1, 2, 3))]
GROUPS = ["web", "gpu", "site_a", "all"]
variables = st.dictionaries(
    st.sampled_from(["ansible_host", "rack", "ansible_password", "db_secret", "other"]),
    st.sampled_from(["10.0.0.1", "10.0.0.2", PLANTED]),
)


@st.composite
def inventories(draw):
    """Hosts with variables, groups of some, which may have each other in them."""
    some = st.lists(st.sampled_from(HOSTS), max_size=4)
    groups = {
        name: {
            "hosts": draw(some),
            "children": draw(st.lists(st.sampled_from(GROUPS), max_size=2)),
        }
        for name in draw(st.sets(st.sampled_from(GROUPS)))
    }
    hostvars = {host: draw(variables) for host in draw(some)}
    for own in hostvars.values():  # what is no secret is no planted one
        for name in {"ansible_host", "rack"} & own.keys():
            own[name] = own[name].replace(PLANTED, "10.0.0.3")
    return {"_meta": {"hostvars": hostvars}, **groups}


def members(inventory, name, above=()):
    """The hosts of a group, as its documentation says it."""
    group = inventory.get(name)
    if group is None or name in above:
        return set()
    below = [members(inventory, one, (*above, name)) for one in group["children"]]
    return set(group["hosts"]).union(*below)


@given(inventories())
def test_nodes_and_groups_are_just_those_of_the_inventory(inventory):
    found = read_ansible(SiteFile("i.json", json.dumps(inventory)), {"rack": "rack"})
    hostvars = inventory["_meta"]["hostvars"]
    groups = [name for name in inventory if name != "_meta"]
    hosts = {*hostvars}.union(*(inventory[name]["hosts"] for name in groups))
    expected = {name: members(inventory, name) for name in groups}
    expected |= {"all": hosts} if "all" in groups else {}

    event(f"hosts: {min(len(hosts), 4)}, groups: {len(groups)}")
    site = site_of(found)
    assert set(site) == hosts
    assert groups_of(found) == {name: some for name, some in expected.items() if some}
    for host, (attributes, desired) in site.items():
        own = hostvars.get(host, {})
        assert attributes.get("rack") == own.get("rack")
        assert attributes.get("address") == own.get("ansible_host")
        assert desired == {}
    assert nothing_planted(found)
    secrets = {name for own in hostvars.values() for name in own} & {
        "ansible_password",
        "db_secret",
    }
    told = {one.what for one in found.remarks if one.sort is RemarkSort.SECRET}
    assert told == {f"variable {name}" for name in secrets}
