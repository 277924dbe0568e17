"""Whatever an import is given, it is refused, or becomes a site in which nothing is wrong."""

import json

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.rest.schemas import SiteFile
from haptera.selectors.nodeset import NODESET_BYTES_MAX
from haptera.site.imports.ansible import read_ansible
from haptera.site.imports.clustershell import read_clustershell
from haptera.site.imports.found import GROUPS_BYTES_MAX, GROUPS_MAX, FoundSite
from haptera.site.imports.layercake import read_layercake
from haptera.site.imports.netbox import read_netbox
from haptera.site.imports.site_text import site_text
from haptera.site.imports.warewulf import read_warewulf
from haptera.site.model.groups import EXPANDED_MAX
from haptera.site.syntax.sources import SITE_BYTES_MAX
from haptera.site.syntax.tree import Place
from tests.site.imports.reading import groups_of, nothing_planted, said, site_of

IMPORTS = {
    "ansible": lambda file: read_ansible(file, {"rack": "rack"}),
    "clustershell": lambda file: read_clustershell([file], {"rack": "nodes"}, None),
    "layercake": lambda file: read_layercake(file, manage=True),
    "netbox": lambda file: read_netbox([file], {"rack": "rack"}),
    "warewulf": lambda file: read_warewulf(file, {"rack": "rack"}),
}
ENDINGS = {"clustershell": [".yaml", ".cfg", ".conf"]}

# What means something to any of them.
KEYS = (
    "_meta hostvars hosts children vars ansible_host rack all n1 n[1-2] nodes nodename id parentId"
    " physState runState platform extensions @type ifaces kraken ip services nodeprofiles profiles"
    " tags ipmi ipaddr port default local - a{b} password"
    " results name slug custom_fields primary_ip oob_ip address role rack status value"
)
keys = st.sampled_from([*KEYS.split(), "network devices", ""])
texts = keys | st.sampled_from(
    ["10.0.0.1", "CgsMCw==", "SYNC", "POWER_ON", "x/IPv4.IPv4OverEthernet", "@all", "*", "a'\n\t"]
) | st.text(max_size=6)  # fmt: skip
scalars = texts | st.none() | st.booleans() | st.integers(-1, 700)
trees = st.recursive(
    scalars,
    lambda inner: st.dictionaries(keys, inner, max_size=5) | st.lists(inner, max_size=4),
    max_leaves=25,
)
meaning = st.one_of(
    trees,
    st.fixed_dictionaries({"nodes": st.lists(st.dictionaries(keys, trees)) | trees}),
    st.fixed_dictionaries(
        {"nodes": st.dictionaries(keys, trees), "nodeprofiles": st.dictionaries(keys, trees)}
    ),
    st.fixed_dictionaries(
        {
            "_meta": st.fixed_dictionaries({"hostvars": st.dictionaries(keys, trees)}),
            "all": st.fixed_dictionaries({"hosts": st.lists(texts), "children": st.lists(texts)}),
        }
    ),
    st.fixed_dictionaries(
        {"count": st.integers(0, 3), "results": st.lists(st.dictionaries(keys, trees) | trees)}
    ),
)


def imported(name, text, ending=""):
    try:
        return IMPORTS[name](SiteFile(f"source{ending}", text))
    except HapteraError as error:
        refused = error
    event("refused")
    assert (refused.where or "").startswith("source")
    return None


@pytest.mark.parametrize("name", IMPORTS)
@given(data=st.data())
def test_any_tree_becomes_a_site_or_is_refused(name, data):
    ending = data.draw(st.sampled_from(ENDINGS.get(name, [""])))
    found = imported(name, json.dumps(data.draw(meaning)), ending)

    if found is not None:
        event(f"nodes: {min(len(found.nodes), 3)}")
        assert set(site_of(found)) == set(found.nodes)
        assert groups_of(found) == {group: set(some) for group, some in found.groups.items()}


@pytest.mark.parametrize("name", IMPORTS)
@given(text=st.text(max_size=30) | st.text("[]{}:,\"' \n-&*@#ab!1", max_size=20), data=st.data())
def test_any_text_becomes_a_site_or_is_refused(name, text, data):
    found = imported(name, text, data.draw(st.sampled_from(ENDINGS.get(name, [""]))))

    if found is not None:
        assert set(site_of(found)) == set(found.nodes)


PLACE = Place("source", 1, 1)


def found_of(groups):
    found = FoundSite()
    for nodes in groups.values():
        for node in nodes:
            found.node(node, PLACE)
    for name, nodes in groups.items():
        found.group(name, nodes, PLACE)
    return found


def test_groups_whose_names_a_node_cannot_all_have_are_left_out():
    names = [f"{at:030}x" for at in range(10)]
    found = found_of({name: ["n1", f"n{at + 2}"] for at, name in enumerate(names)})

    kept = GROUPS_BYTES_MAX // (len(names[0]) + len(", "))
    assert list(found.groups) == names[:kept]
    assert set(groups_of(found)) == set(names[:kept])
    assert [one[0] for one in said(found)] == ["left out"] * (len(names) - kept)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("count", "text", "what"),
    [
        (25_000, "x{0:060}", f"the site would take more than {SITE_BYTES_MAX} bytes"),
        (200_000, "r{1}", f"the node-sets of the site would name more than {EXPANDED_MAX} nodes"),
    ],
)
def test_more_than_a_site_may_have_is_refused(count, text, what):
    found = FoundSite()
    for at in range(count):
        one = found.node(f"n{at}", PLACE)
        for name in ("platform", "rack", "fault_group"):
            # The sets of nodes of one text are others for each attribute.
            found.attribute(one, name, text.format(at * 7919 % 99_991, at % len(name)), PLACE)
    with pytest.raises(HapteraError) as refused:
        site_text(found, "imported")
    assert (refused.value.what, refused.value.do is not None) == (what, True)


def test_more_groups_than_an_import_takes_are_refused():
    with pytest.raises(HapteraError, match=f"an import takes {GROUPS_MAX} groups"):
        found_of({f"g{at}": ["n1"] for at in range(GROUPS_MAX + 1)})


def test_a_group_too_long_for_a_node_set_is_with_its_nodes():
    nodes = [f"{'abcdefghij'[at % 10] * 20}{at:x}x" for at in range(0, 16**4, 22)]
    found = found_of({"long": nodes, "short": nodes[:2]})

    assert len(",".join(nodes)) > NODESET_BYTES_MAX
    assert groups_of(found) == {"long": set(nodes), "short": set(nodes[:2])}
    assert nothing_planted(found)
