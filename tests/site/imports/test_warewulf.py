"""Warewulf's registry: nodes with what holds of them after all profiles, no password with them."""

import json

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.rest.schemas import SiteFile
from haptera.site.imports.site_text import site_text
from haptera.site.imports.warewulf import read_warewulf
from tests.site.imports.reading import nothing_planted, said, site_of

NODES_CONF = """\
nodeprofiles:
  default:
    comment: This profile is automatically included for each node
    runtime overlay: [hosts, ssh.authorized_keys]
    ipmi: {username: admin, password: planted, port: "6230"}
    network devices:
      default: {netmask: 255.255.255.0}
  gpu:
    profiles: [big]
    image name: rocky-9-gpu
  big:
    tags: {rack: r2}
nodes:
  n1:
    profiles: [default]
    tags: {rack: r1}
    ipmi: {ipaddr: 10.0.3.1}
    network devices:
      default: {hwaddr: e6:92:39:49:7b:03, ipaddr: 10.0.2.1}
  n2:
    profiles: [default, gpu]
    ipmi: {ipaddr: 10.0.3.2, password: planted}
    network devices:
      default: {hwaddr: e6:92:39:49:7b:04, ipaddr: 10.0.2.2}
  n3:
    profiles: [default, gpu, ~big, gone]
    ipmi: {ipaddr: 10.0.3.2, port: ""}
"""


def read(text, **attributes):
    return read_warewulf(SiteFile("nodes.conf", text), attributes)


def test_nodes_have_their_addresses_and_bmcs_by_their_profiles():
    found = read(NODES_CONF, rack="rack")

    assert site_of(found) == {
        "n1": (
            {
                "address": "10.0.2.1",
                "bmc": "10.0.3.1:6230",
                "mac": "e6:92:39:49:7b:03",
                "rack": "r1",
            },
            {},
        ),
        "n2": (
            {
                "address": "10.0.2.2",
                "bmc": "10.0.3.2:6230",
                "mac": "e6:92:39:49:7b:04",
                "rack": "r2",
            },
            {},
        ),
        "n3": ({"bmc": "10.0.3.2:6230"}, {}),
    }
    assert nothing_planted(found)


def test_profiles_are_there_by_name_in_their_order():
    text = site_text(read(NODES_CONF, rack="rack"), "c")

    assert "profiles:\n  default: {}\n  gpu: {}\n  big: {}\n" in text
    assert '\n  n2: {mac: "e6:92:39:49:7b:04", profiles: [default, big, gpu]}\n' in text
    assert "\n  n3: {profiles: [default, gpu]}\n" in text


def test_all_that_is_not_in_the_site_is_told():
    assert said(read(NODES_CONF, rack="rack")) == [
        ("conflict", "there is no profile gone", "n3", "25:3"),
        ("conflict", "bmc is that of n2, too", "n3", "25:3"),
        ("secret", "ipmi password", "n2", "22:40"),
        ("secret", "ipmi password of profile default", "5:39"),
        ("left out", "comment of profile default", "3:14"),
        ("left out", "runtime overlay of profile default", "4:23"),
        ("left out", "ipmi username of profile default", "5:22"),
        ("left out", "network devices default netmask of profile default", "7:26"),
        ("left out", "image name of profile gpu", "10:17"),
    ]


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ("network devices: {eth1: {ipaddr: 10.0.0.1}, default: {ipaddr: 10.0.0.2}}", "10.0.0.2"),
        ("network devices: {eth1: {ipaddr: 10.0.0.1}, eth2: {ipaddr: 10.0.0.2}}", "10.0.0.1"),
        ("{primary network: b, network devices: {a: {ipaddr: 10.0.0.1}, b: {ipaddr: 10.0.0.2}}}",
         "10.0.0.2"),
        ("network devices: {a: {ipaddr: 10.0.0.1}, b: {primary: 'true', ipaddr: 10.0.0.2}}",
         "10.0.0.2"),
        # As each version says yes, and no.
        *[
            (f"network devices: "
             f"{{a: {{ipaddr: 10.0.0.1}}, b: {{{mark}: {word}, ipaddr: 10.0.0.2}}}}",
             "10.0.0.2" if is_yes else "10.0.0.1")
            for mark in ("primary", "default")
            for word, is_yes in [
                ("true", True), ("'true'", True), ("True", True), ("yes", True), ("'1'", True),
                ("1", True), ("false", False), ("no", False), ("'0'", False), ("''", False),
            ]
        ],
        ("network devices: {a: {default: true, ipaddr: 10.0.0.1}, b: {primary: true,"
         " ipaddr: 10.0.0.2}}", "10.0.0.2"),
        ("network devices: {default: {ipaddr: 10.0.0.1}, b: {default: true, ipaddr: 10.0.0.2}}",
         "10.0.0.2"),
        ("network devices: {'': {ipaddr: 10.0.0.1}}", "10.0.0.1"),
        ("network devices: {}", None),
    ],
)  # fmt: skip
def test_the_address_is_that_in_the_primary_network(fields, address):
    fields = fields if fields.startswith("{") else f"{{{fields}}}"
    attributes, _ = site_of(read(f"nodes: {{n1: {fields}}}"))["n1"]

    assert attributes.get("address") == address


@pytest.mark.parametrize(
    ("fields", "attributes", "remarks"),
    [
        # What chose the network was used; what said no, or was beaten, stands nowhere.
        (
            "network devices: {a: {primary: 'yes', hwaddr: 52-54-00-00-00-0A, ipaddr: 10.0.0.1},"
            " b: {default: false, ipaddr: 10.0.0.2}}",
            {"address": "10.0.0.1", "mac": "52:54:00:00:00:0a"},
            ["network devices b default", "network devices b ipaddr"],
        ),
        (
            "{primary network: b, network devices: {a: {primary: true, ipaddr: 10.0.0.1},"
            " b: {ipaddr: 10.0.0.2}}}",
            {"address": "10.0.0.2"},
            ["network devices a primary", "network devices a ipaddr"],
        ),
        # A node whose address DHCP gives has its card all the same.
        (
            "network devices: {a: {type: ethernet}, b: {hwaddr: '52:54:00:00:00:0b'}}",
            {"mac": "52:54:00:00:00:0b"},
            ["network devices a type"],
        ),
        ("network devices: {a: {hwaddr: none}}", {}, ["mac: it is not an address"]),
    ],
)
def test_what_chose_the_network_is_not_left_out(fields, attributes, remarks):
    fields = fields if fields.startswith("{") else f"{{{fields}}}"
    found = read(f"nodes: {{n1: {fields}}}")

    assert (site_of(found)["n1"][0], [one[1] for one in said(found)]) == (attributes, remarks)


def test_a_card_that_two_nodes_have_is_named():
    fields = "{network devices: {a: {hwaddr: '52:54:00:00:00:0b'}}}"

    assert said(read(f"nodes: {{n1: {fields}, n2: {fields}}}"))[0][:3] == (
        "conflict",
        "mac is that of n1, too",
        "n2",
    )


def test_tags_anchors_and_merged_keys_are_what_yaml_has_them_for():
    text = """
nodeprofiles:
  default: {comment: !!str hello}
nodes:
  n1: {ipmi: &ipmi {ipaddr: 10.0.1.1, port: "6230"}}
  n2: {ipmi: {<<: *ipmi, ipaddr: 10.0.1.2}}
  n3: {ipmi: {ipaddr: 10.0.1.3, <<: [*ipmi]}}
  n4: {ipmi: *ipmi}
"""
    found = read_warewulf(SiteFile("nodes.conf", text), {})
    bmcs = {name: one.attributes.get("bmc") for name, one in found.nodes.items()}
    assert bmcs == {
        "n1": "10.0.1.1:6230",
        "n2": "10.0.1.2:6230",
        "n3": "10.0.1.3:6230",
        "n4": "10.0.1.1:6230",
    }


LAUGHS = "\n".join(
    ["nodes:", "  n0: &n0 [a, a]", *(f"  n{n}: &n{n} [*n{n - 1}, *n{n - 1}]" for n in range(1, 40))]
)


@pytest.mark.parametrize(
    ("text", "why"),
    [(LAUGHS, "aliases make more"), ("nodes: &a {n1: *a}", "no anchor a before it"),
     ("nodes: {n1: *b}", "no anchor b before it"), ("nodes: !mine {n1: {}}", "tags are not used"),
     ("nodes: {n1: {<<: [a]}}", "merges mappings, and this is none")],
    ids=["laughs", "itself", "missing", "tag", "merged"],
)  # fmt: skip
def test_what_aliases_cannot_stand_for_is_refused(text, why):
    with pytest.raises(HapteraError, match=why):
        read_warewulf(SiteFile("nodes.conf", text), {})


def test_an_older_registry_has_its_bmc_without_a_mapping():
    text = "WW_INTERNAL: 43\nnodes: {n1: {ipmi ipaddr: 10.0.3.1, ipmi password: planted}}\n"
    found = read(text)

    assert site_of(found) == {"n1": ({"bmc": "10.0.3.1:623"}, {})}
    assert [one[0] for one in said(found)] == ["secret"]
    assert nothing_planted(found)


def test_a_value_that_another_one_beats_is_told():
    text = """\
nodeprofiles:
  low: {tags: {rack: r1}, ipmi: {port: "6230"}}
  high: {tags: {rack: r2}, profiles: [gone]}
nodes:
  n1: {profiles: [low], tags: {rack: r3}, ipmi: {ipaddr: [10.0.3.1, 10.0.3.2]}}
"""
    found = read(text, rack="rack")

    assert site_of(found) == {"n1": ({"bmc": "10.0.3.1:6230", "rack": "r3"}, {})}
    assert said(found) == [
        ("conflict", "there is no profile gone", "3:3"),
        ("left out", "ipmi ipaddr", "n1", "5:69"),
        ("left out", "tags rack of profile low", "2:22"),
        ("left out", "tags rack of profile high", "3:23"),
    ]


@pytest.mark.parametrize(
    ("ipmi", "bmc"),
    [
        ("ipaddr: '2001:db8::21'", "[2001:db8::21]:623"),
        ("ipaddr: '[2001:db8::21]', port: '6230'", "[2001:db8::21]:6230"),
        ("ipaddr: 'bmc:9', port: '6230'", "bmc:9"),
        ("ipaddr: 10.0.3.1, port: many", None),
        ("ipaddr: 'fe80:'", None),
    ],
)
def test_the_address_of_a_bmc_is_one_that_its_module_can_read(ipmi, bmc):
    found = read(f"nodes: {{n1: {{ipmi: {{{ipmi}}}}}}}")

    assert site_of(found)["n1"][0].get("bmc") == bmc
    left_out = [one[1] for one in said(found)]
    assert left_out == ["bmc: it is not an address"] * (bmc is None)


@pytest.mark.parametrize("text", ["[]", "7"])
def test_what_is_no_registry_is_refused(text):
    with pytest.raises(HapteraError, match="it is not a registry"):
        read(text)


PROFILES = ["a", "b", "c", "d"]
names = st.lists(st.sampled_from([*PROFILES, *(f"~{one}" for one in PROFILES)]), max_size=4)
tags = st.dictionaries(st.just("rack"), st.sampled_from(["r1", "r2", "r3"]))
own = st.fixed_dictionaries({"profiles": names, "tags": tags})


def with_theirs(registry, wanted, seen):
    """The profiles of a list, as the documentation says it: each behind those that it names."""
    found = []
    for name in wanted:
        if name.startswith("~"):
            found.append(name)
        elif name not in seen:
            seen.add(name)
            found += with_theirs(registry, registry.get(name, {}).get("profiles", ()), seen)
            found.append(name)
    return found


@given(st.dictionaries(st.sampled_from(PROFILES), own), own)
def test_what_holds_of_a_node_is_as_warewulf_says(profiles, node):
    registry = {"nodeprofiles": profiles, "nodes": {"n1": node}}
    found = read(json.dumps(registry), rack="rack")

    holding = []
    for name in with_theirs(profiles, node["profiles"], set()):
        if name.startswith("~"):
            holding = [one for one in holding if one != name[1:]]
        elif name in profiles:
            holding.append(name)
    racks = [profiles[name]["tags"] for name in holding] + [node["tags"]]
    expected = [one["rack"] for one in racks if "rack" in one]

    event(f"profiles: {len(holding)}")
    assert found.nodes["n1"].profiles == tuple(holding)
    assert found.nodes["n1"].attributes.get("rack") == (expected[-1] if expected else None)
    assert set(site_of(found)) == {"n1"}
