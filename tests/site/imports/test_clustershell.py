"""ClusterShell's groups, beside ClusterShell itself: the same nodes, in the same groups."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.rest.schemas import SiteFile
from haptera.site.imports.clustershell import NESTED_MAX, read_clustershell
from haptera.site.imports.source import read_group_files
from tests.site.imports.reading import groups_of, said, site_of

reason = "ClusterShell is not installed: pip install -r requirements-dev.txt"
shell = pytest.importorskip("ClusterShell.NodeSet", reason=reason)
sources = pytest.importorskip("ClusterShell.NodeUtils", reason=reason)

# What the package itself installs.
OWN = Path(sys.prefix) / "etc" / "clustershell"


def read(groups, attributes=(), default=None):
    source = SiteFile("groups.yaml", json.dumps(groups))
    return read_clustershell([source], dict(attributes), default)


def as_it_says(loader, default):
    """The nodes of each group, asked of ClusterShell's own reader, as imports call them."""
    by_name = {one.name: one for one in loader}
    resolver = sources.GroupResolver(by_name[default])
    for one in by_name.values():
        if one.name != default:
            resolver.add_source(one)
    return {
        name if source == default else f"{source}.{name}": {
            *shell.NodeSet(f"@{source}:{name}", resolver=resolver)
        }
        for source, one in by_name.items()
        for name in one.resolv_list()
    }


def test_the_groups_of_its_own_example_are_as_it_says():
    path = OWN / "groups.d" / "cluster.yaml.example"
    found = read_clustershell([SiteFile("c.yaml", path.read_text())], {}, "roles")
    there = as_it_says(sources.YAMLGroupLoader(str(path)), "roles")

    assert groups_of(found) == there
    assert set(site_of(found)) == set().union(*there.values())
    assert said(found) == []


def test_its_own_folder_is_read_as_it_is_configured():
    files = read_group_files([str(OWN)])
    found = read_clustershell(files, {}, None)

    assert [Path(one.name).name for one in files] == ["groups.conf", "local.cfg"]
    assert groups_of(found)["oss"] == {"example4", "example5"}
    assert groups_of(found)["all"] == set(site_of(found)) - {"example0"}
    elsewhere = [("confdir", "groups.conf.d"), ("autodir", "groups.d")]
    assert [one[:2] for one in said(found)] == [
        ("note", f"{option}: the folder /etc/clustershell/{folder} was not read")
        for option, folder in elsewhere
    ]


NODES = [f"r{rack}n{n}" for rack in (1, 2) for n in (1, 2, 3)]
SETS = ["r1n[1-3]", "r[1-2]n1", "r2n2", "r1n1,r2n3", "r[1-2]n[1-3]", ""]
GROUPS = {"roles": ["web", "gpu", "io"], "racks": ["r1", "r2", "old"]}


@st.composite
def group_files(draw):
    """Groups of two sources; each may be made of those before it."""
    found, before = {}, []
    for source, names in GROUPS.items():
        found[source] = {}
        for name in names:
            terms = st.sampled_from([*SETS[:-1], *before])
            text = draw(terms)
            for operator in draw(st.lists(st.sampled_from(",!&^"), max_size=2)):
                text += operator + draw(terms)
            listed = st.sampled_from([text, [text], [text, "r2n2"], ""])
            found[source][name] = draw(listed)
            before.append(f"@{source}:{name}")
    return found


@given(group_files(), st.sampled_from([*GROUPS]))
def test_nodes_and_groups_are_just_those_of_the_files(tmp_path_factory, groups, default):
    path = tmp_path_factory.getbasetemp() / "groups.yaml"
    path.write_text(json.dumps(groups))
    there = as_it_says(sources.YAMLGroupLoader(str(path)), default)
    found = read(groups, default=default)

    event(f"empty: {sum(not some for some in there.values())}")
    assert groups_of(found) == {name: some for name, some in there.items() if some}
    assert set(site_of(found)) == set().union(*there.values())
    assert {desired for _, (_, desired) in site_of(found).items() if desired} == set()


def test_a_source_can_be_an_attribute():
    groups = {"local": {"all": "n[1-3]"}, "racks": {"r1": "n[1-2]", "r2": "n3", "old": "n1"}}
    found = read(groups, {"rack": "racks"})

    assert {name: one["rack"] for name, (one, _) in site_of(found).items()} == {
        "n1": "r1",
        "n2": "r1",
        "n3": "r2",
    }
    assert groups_of(found) == {"all": {"n1", "n2", "n3"}}
    assert [one[:3] for one in said(found)] == [
        ("conflict", "rack is given in two ways; the first was taken", "n1")
    ]


def test_all_nodes_of_a_source_are_those_of_its_group_all_or_else_of_every_group():
    whole = {"a": {"all": "n[1-2]", "more": "n3", "some": "@*"}}
    parts = {"a": {"one": "n1", "two": "n2", "some": "@*", "ones": "*1"}}

    assert groups_of(read(whole))["some"] == {"n1", "n2"}
    assert groups_of(read(parts))["some"] == {"n1", "n2"}
    assert groups_of(read(parts))["ones"] == {"n1"}


def test_what_cannot_be_read_is_told_with_its_place():
    text = """\
local:
  good: n[1-2],@gone
  bad: "n[1-"
  of_bad: "n7,@bad"
  round: "@round"
  deep: {a: b}
  empty:
  -x: n5
  twice: n1
  twice: n2
more: [a]
"""
    found = read_clustershell([SiteFile("g.yaml", text)], {}, None)

    assert groups_of(found) == {"good": {"n1", "n2"}, "twice": {"n1"}}
    round_ = f"it has itself in it, or more than {NESTED_MAX} groups in each other"
    assert said(found) == [
        (
            "conflict",
            "there is no group @local:gone, so it counts as empty",
            "2:3",
        ),
        ("twice", "the key twice is given already, at g.yaml:9:3; the first was taken", "10:3"),
        ("left out", "group @local:deep: it is not a node-set", "6:3"),
        ("left out", "source more: it is not a mapping", "11:7"),
        ("left out", "group @local:bad: a bracket that is not closed", "3:3"),
        ("left out", "group @local:of_bad: a bracket that is not closed", "4:3"),
        ("left out", f"group @local:round: {round_}", "5:3"),
        ("left out", "group empty: it has no nodes", "7:3"),
        ("left out", "group -x: '-x' is not a name", "8:3"),
    ]


def test_groups_nested_too_deeply_are_left_out():
    chain = {f"g{at}": f"@g{at + 1}" for at in range(99)} | {"g99": "n1"}
    found = read({"local": chain})

    assert len(groups_of(found)) == NESTED_MAX
    assert set(groups_of(found)["g99"]) == {"n1"}


def test_a_flat_file_joins_lines_and_a_conf_names_commands_that_are_not_run(tmp_path):
    conf = SiteFile(
        "groups.conf",
        "[Main]\ndefault: slurm\n# a comment\n[slurm]\nmap: sinfo -h\n  -o %N\n[local]\nmap: x\n",
    )
    flat = SiteFile("local.cfg", "a: n1 n2\na: n[3-4], n5\nwhat is this\n")
    found = read_clustershell([conf, flat], {}, None)

    assert groups_of(found) == {"local.a": {"n1", "n2", "n3", "n4", "n5"}}
    assert said(found) == [
        ("twice", "group @local:a is there twice; both were joined", "2:1"),
        ("left out", "a line that is not GROUP: NODE-SET", "3:1"),
        ("left out", "source slurm: commands tell its groups, and these are not run", "4:1"),
    ]
