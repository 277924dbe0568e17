"""Layers, profiles, groups: whose word holds, and what cannot be said twice."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.model.changes import Declare, Desired, SetDesired, StoredEntity
from haptera.model.errors import InputError
from haptera.rest.schemas import SiteFile
from haptera.site import changes, parse_site
from haptera.site.apply.difference import difference
from haptera.site.apply.export import StartedWith, export
from tests.site.written import as_json, as_yaml, sites

SITE = """\
cluster: c
groups:
  gpu: n[1-2]
  edge: "@gpu, n3"
defaults:
  attributes: {platform: lab, rack: "r{n}"}
  desired: {power: off}
profiles:
  base:
    attributes: {bmc: "10.{site}.{n+100}", jobs: none}
    desired: {power: on, agent: up}
    services: {web: {run: running, port: "80{n}"}}
    modules: {service: {version: "2"}}
  edge:
    desired: {power: hung}
    services: {web: {port: 90}}
nodes:
  n[1-4]: {}
  "@gpu": {profiles: [base], rack: rack1}
  n3: {profiles: [base, edge]}
fault_groups: {pdu1: "n[1,4]"}
services: {web: {command: "serve {rack} {bmc}", port: 80}}
desired:
  n2: {power: off}
  web@@edge!n3: {run: stopped}
modules:
  service: {version: "1", settings: {a: 1}}
  labnode: {enabled: false}
"""


def read(text):
    site = parse_site([SiteFile("site.yaml", text)], {"site": "7"})
    return {str(one.entity): (dict(one.attributes), dict(one.desired)) for one in site.entities}


def errors_of(text):
    with pytest.raises(InputError) as raised:
        read(text)
    assert all(error.do for error in raised.value.errors)
    return [(error.where.removeprefix("site.yaml:"), error.what) for error in raised.value.errors]


def test_a_node_outranks_its_profiles_a_later_profile_an_earlier_and_all_the_defaults():
    found = read(SITE)
    lab = {"platform": "lab"}
    gpu = {"jobs": "none", "groups": "gpu, edge", "rack": "rack1"}
    assert {name: one for name, one in found.items() if name.startswith("node")} == {
        "node:n1": ({**lab, **gpu, "bmc": "10.7.101", "fault_group": "pdu1"},
                    {"power": "on", "agent": "up"}),
        "node:n2": ({**lab, **gpu, "bmc": "10.7.102"}, {"power": "off", "agent": "up"}),
        "node:n3": ({**lab, "jobs": "none", "rack": "r3", "bmc": "10.7.103", "groups": "edge"},
                    {"power": "hung", "agent": "up"}),
        "node:n4": ({**lab, "rack": "r4", "fault_group": "pdu1"}, {"power": "off"}),
    }  # fmt: skip


def test_services_and_modules_are_laid_under_what_nodes_and_profiles_say_of_them():
    found = read(SITE)
    assert {name: one for name, (_, one) in found.items() if name.startswith("service")} == {
        "service:web@n1": {"run": "stopped", "port": 801, "command": "serve rack1 10.7.101"},
        "service:web@n2": {"run": "stopped", "port": 802, "command": "serve rack1 10.7.102"},
        "service:web@n3": {"run": "running", "port": 90, "command": "serve r3 10.7.103"},
    }
    settings = '{"a":1}'
    assert {name: one for name, (_, one) in found.items() if name.startswith("module")} == {
        "module:labnode": {"run": "stopped"},
        **{f"module:service@n{n}": {"version": "2", "settings": settings} for n in (1, 2, 3)},
        "module:service@n4": {"version": "1", "settings": settings},
    }


HEAD = "cluster: c\nnodes: {n1: {profiles: p}, n2: }\n"


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        (
            "cluster: c\nprofiles: {p: , q: }\nnodes:\n  n1: {profiles: [p, q, p]}\n",
            [("4:18", "the profile p is there twice")],
        ),
        (HEAD, [("2:24", "there is no profile 'p'")]),
        (
            HEAD + "profiles: {p: }\nnodes2:\n",
            [("4:1", "unknown key nodes2")],
        ),
        (
            "cluster: c\nprofiles: {p: , q: }\nnodes:\n  n[1-2]: {profiles: p}\n"
            "  n1: {profiles: q}\n",
            [("5:8", "profiles of node:n1 are given twice, here and at site.yaml:4:22")],
        ),
        (
            HEAD + "profiles:\n  p:\n    desird: {power: on}\n"
            "  unused:\n    desired: {power: onn}\n"
            "    attributes: {rak: 1}\n    services: {web: {run: running}}\n"
            "    modules: {labnode: {enabled: true}, service: {enabled: 1}}\n",
            [
                ("5:5", "unknown key desird"),
                ("7:22", "node.power cannot be 'onn'"),
                ("8:23", "a node has no attribute 'rak'"),
                ("9:16", "there is no service 'web'"),
                ("10:15", "no module 'labnode' runs on nodes"),
                ("10:60", "enabled is true or false"),
            ],
        ),
        (
            "cluster: c\nnodes: {n1: {rack: '{bmc}', bmc: '{rack}'}, n2: {jobs: '{bmc}'}}\n",
            [
                ("2:34", "attributes refer to each other in a circle: rack > bmc > rack"),
                ("2:56", "unknown placeholder {bmc}"),
            ],
        ),
        (
            "cluster: c\ngroups: {a: '@b', b: '@a', c: n9, d: '@e', n1 2: n1}\n"
            "nodes: {n1: , '@a': , 'n*': }\ndesired: {'@f': {power: on}, '@rak:1': {power: on}}\n",
            [
                ("2:13", "a group contains itself: a > b > a"),
                ("2:22", "a group contains itself: b > a > b"),
                ("2:31", "no such node: n9"),
                ("2:38", "there is no group 'e'"),
                ("2:44", "'n1 2' is not a name"),
                ("3:15", "a group contains itself: a > b > a"),
                ("3:23", "a pattern does not declare nodes"),
                ("4:11", "there is no group 'f'"),
                ("4:30", "no attribute of nodes is called 'rak'"),
            ],
        ),
        (
            "cluster: c\ngroups: {gpu: n1}\nnodes: {n1: {groups: 'old'}}\n"
            "policies: [{for: '@gpu,@old,@*', attempts: 1}, {for: 'node:@gpv', attempts: 1}]\n",
            [("4:54", "there is no group 'gpv'")],
        ),
        (
            "cluster: c\nnodes: {n1: {fault_group: x}}\nfault_groups: {y: n1, z: n7}\n",
            [
                ("3:19", "fault_group of node:n1 is given twice, here and at site.yaml:2:14"),
                ("3:26", "no such node: n7"),
            ],
        ),
        (
            "cluster: c\nnodes: {n1: }\ndesired: {module:service: {run: running},"
            " module:labnode@n1: {run: running}, module:x@n1: {}}\nmodules: [labnode, labnode]\n",
            [
                ("3:11", "the parent runs no module 'service'"),
                ("3:43", "there is no module 'labnode'"),
                ("3:78", "there is no module 'x'"),
                ("4:20", "labnode is named twice"),
            ],
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_with_its_place(text, errors):
    assert errors_of(text) == errors


def test_patterns_and_attributes_name_nodes_wherever_they_are_declared():
    found = read(
        "cluster: c\nnodes: {'r[1-2]n[1-2]': {rack: 'r{r}'}}\n"
        "groups: {first: 'r1*'}\n"
        "desired: {'@rack:r2': {power: on}, '@first&r?n2': {power: off},"
        " '*n1!@rack:r2': {agent: up}}\n"
    )
    assert {name: desired for name, (_, desired) in found.items()} == {
        "node:r1n1": {"agent": "up"},
        "node:r1n2": {"power": "off"},
        "node:r2n1": {"power": "on"},
        "node:r2n2": {"power": "on"},
    }


names = st.sampled_from(["power", "agent", "busy"])
VALUES = {"power": ["on", "off"], "agent": ["up"], "busy": ["free", "busy"]}
said = st.dictionaries(names, st.integers(0, 1)).map(
    lambda one: {name: VALUES[name][at % len(VALUES[name])] for name, at in one.items()}
)


def desired_of(defaults, profiles, own):
    data = {
        "cluster": "c",
        "defaults": {"desired": defaults},
        "profiles": {f"p{at}": {"desired": one} for at, one in enumerate(profiles)},
        "nodes": {"n1": {"profiles": [f"p{at}" for at in range(len(profiles))]}},
        "desired": {"n1": own},
    }
    (one,) = parse_site([as_json(data)], {}).entities
    return one.desired


@given(said, st.lists(said, min_size=2, max_size=5), said, st.data())
def test_layers_associate_and_are_laid_like_dicts(defaults, profiles, own, data):
    whole = desired_of(defaults, profiles, own)
    plain = dict(defaults)
    for one in (*profiles, own):
        plain |= one
    assert whole == plain
    # Any neighbours may be one layer beforehand, and nothing changes.
    at = data.draw(st.integers(0, len(profiles) - 2))
    joined = [*profiles[:at], profiles[at] | profiles[at + 1], *profiles[at + 2 :]]
    assert desired_of(defaults, joined, own) == whole
    assert desired_of(defaults | profiles[0], profiles[1:], own) == whole
    assert desired_of(defaults, profiles[:-1], profiles[-1] | own) == whole


def said_of(*files):
    """What some files say, or all that is wrong with them."""
    try:
        return parse_site(files, {"site": "/srv"})
    except InputError as error:
        return {one.what for one in error.errors}


@pytest.mark.timeout(480)
@given(sites())
def test_a_site_says_the_same_in_yaml_and_json_in_one_file_and_in_two(data):
    whole = said_of(as_yaml(data))
    event("refused" if isinstance(whole, set) else f"entities {len(whole.entities)}")

    assert said_of(as_json(data)) == whole
    first = dict([*data.items()][::2])
    rest = {key: one for key, one in data.items() if key not in first}
    assert said_of(as_yaml(first), as_json(rest, "rest.yaml")) == whole


@pytest.mark.timeout(480)
@given(sites())
def test_a_site_is_applied_once_and_is_then_what_is_in_force(data):
    site = said_of(as_yaml(data))
    if isinstance(site, set):
        return
    current = stored(changes(site, []))

    assert changes(site, current) == ()
    assert [*difference(site, current)] == []
    written = export("quick", StartedWith(site.modules), current, None)
    assert changes(said_of(SiteFile("exported.yaml", written)), current) == ()


def stored(some):
    """What there is once these changes are made where nothing was."""
    found = {}
    for change in some:
        match change:
            case Declare(entity, attributes, owner):
                found[entity] = StoredEntity(entity, attributes, owner, {}, 1)
            case SetDesired(entity, name, value, owner):
                found[entity].desired[name] = Desired(value, owner)
    return list(found.values())
