"""All that a source says is in the site, or in a remark that names it.

A source is drawn with keys that mean something to its importer and with some that do not, and each
value in it is another one: so it can be told whether it came through.
"""

import itertools
import json

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.rest.schemas import SiteFile
from haptera.site.imports.ansible import read_ansible
from haptera.site.imports.clustershell import read_clustershell
from haptera.site.imports.layercake import read_layercake
from haptera.site.imports.remarks import RemarkSort
from haptera.site.imports.warewulf import read_warewulf
from haptera.site.syntax.json_tree import read_json
from haptera.site.syntax.tree import Branch, Errors, Leaf, Series

# Stands for a value that is another one each time, as the key would have it.
VALUE = None
ADDRESSES = {"ansible_host", "ipaddr", "ip", "ipmi ipaddr"}
CARDS = {"hwaddr", "mac"}
NODES, GROUPS = (
    st.sampled_from(["n1", "n2", "n3"]),
    st.sampled_from(["g1", "g2", "all", "ungrouped"]),
)
PROFILES = st.sampled_from(["p1", "p2", "p3"])
value = st.just(VALUE)
# Whatever else may stand at a key, of importers' keys and of others.
other = st.recursive(
    value,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.sampled_from(["motd", "ip", "ifaces", "tags"]), inner, min_size=1)
    ),
    max_leaves=6,
)
unsafe = value | st.fixed_dictionaries({"__ansible_unsafe": value})


def mapping(*keys, of=other):
    return st.dictionaries(st.sampled_from(keys), of, max_size=4)


def with_other(**known):
    """Each of these keys, or not, and others."""
    chosen = st.fixed_dictionaries(
        {}, optional={key.replace("__", " "): one for key, one in known.items()}
    )
    return st.tuples(mapping("motd", "comment", "password"), chosen).map(
        lambda two: two[0] | two[1]
    )


variables = with_other(ansible_host=unsafe | other, rack=unsafe | other)
group = st.lists(NODES, max_size=3) | with_other(
    hosts=st.lists(NODES, max_size=3), children=st.lists(GROUPS, max_size=3), vars=variables
)
ansible = st.fixed_dictionaries(
    {"_meta": with_other(hostvars=st.dictionaries(NODES, variables, max_size=3))},
    optional=dict.fromkeys(("g1", "g2", "all", "ungrouped"), group),
)
device = with_other(
    ipaddr=value | other,
    hwaddr=value | other,
    primary=st.sampled_from(["true", "yes", "1", "no"]),
    default=value,
)
fields = with_other(
    profiles=st.lists(PROFILES, max_size=3),
    ipmi=with_other(ipaddr=value | other, port=value),
    tags=with_other(rack=value | other),
    network__devices=st.dictionaries(st.sampled_from(["eth0", "ib0", "default", ""]), device),
    primary__network=st.sampled_from(["eth0", "ib0", "gone"]),
    ipmi__ipaddr=value,
)
warewulf = with_other(
    nodeprofiles=st.dictionaries(PROFILES, fields), nodes=st.dictionaries(NODES, fields, min_size=1)
)
iface = with_other(ip=with_other(ip=value), eth=with_other(mac=value))
extension = st.fixed_dictionaries(
    {"@type": st.just("x/IPv4.IPv4OverEthernet")},
    optional={"ifaces": st.dictionaries(st.sampled_from(["kraken", "eth0"]), iface), "motd": other},
)
kraken = with_other(
    nodename=NODES,
    platform=value,
    physState=st.sampled_from(["POWER_ON", "PHYS_HANG"]),
    extensions=st.lists(extension | other, max_size=2),
    services=st.lists(with_other(id=value), max_size=2),
)
layercake = with_other(nodes=st.lists(kraken, min_size=1, max_size=3))
sets = NODES | st.lists(NODES, max_size=2) | other
clustershell = st.dictionaries(
    st.sampled_from(["local", "racks"]), st.dictionaries(GROUPS, sets, max_size=3), min_size=1
)

IMPORTS = {
    "ansible": (ansible, lambda file: read_ansible(file, {"rack": "rack"})),
    "warewulf": (warewulf, lambda file: read_warewulf(file, {"rack": "rack"})),
    "layercake": (layercake, lambda file: read_layercake(file, manage=True)),
    "clustershell": (clustershell, lambda file: read_clustershell([file], {"rack": "racks"}, None)),
}


def filled(tree, number, key=""):
    """The tree with another value at each place, as its key would have it."""
    match tree:
        case None:
            one = next(number)
            if key == "port":
                return f"{1000 + one}"
            if key in CARDS:
                return f"52:54:00:00:{one // 250:02x}:{one % 250:02x}"
            return f"10.0.{one // 250}.{one % 250}" if key in ADDRESSES else f"v{one}"
        case dict():
            return {
                name: filled(inner, number, key if name == "__ansible_unsafe" else name)
                for name, inner in tree.items()
            }
        case list():
            return [filled(inner, number, key) for inner in tree]
        case _:
            return tree


def walk(tree, around=()):
    """Each leaf with the places that are its own, and those of what it is in."""
    match tree:
        case Leaf():
            yield tree, around
        case Series(items):
            for item in items:
                yield from walk(item, (*around, tree.place))
        case Branch(entries):
            for key, inner in entries:
                yield from walk(inner, (*around, tree.place, key.place))


def used(found):
    """All texts that the site has of a source."""
    return {
        *found.groups,
        # Ansible names it also where it has no hosts; what Kraken calls an address.
        *("ungrouped", "x/IPv4.IPv4OverEthernet"),
        # They chose the network of an address.
        *("true", "yes", "1", "eth0", "ib0"),
        *found.profiles,
        *(name for name in found.nodes),
        *itertools.chain(*(one.attributes.values() for one in found.nodes.values())),
        *(
            part
            for one in found.nodes.values()
            for part in one.attributes.get("bmc", "").split(":")
        ),
        *(
            f"POWER_{one.desired['power'].upper()}"
            for one in found.nodes.values()
            if "power" in one.desired
        ),
    }


@pytest.mark.parametrize("name", IMPORTS)
@given(data=st.data())
def test_every_value_is_in_the_site_or_in_a_remark(name, data):
    trees, read = IMPORTS[name]
    source = filled(data.draw(trees), itertools.count(1))
    file = SiteFile("source.yaml", json.dumps(source))
    found = read(file)
    texts = used(found)
    # A conflict is of one value; the others may be of all that is in a mapping.
    whole = {
        place
        for one in found.remarks
        if one.sort is not RemarkSort.CONFLICT or one.what.endswith("the first was taken")
        for place in one.places
    }
    named = {word.rstrip(":") for one in found.remarks for word in one.what.split()}
    own = {place for one in found.remarks for place in one.places}
    leaves = list(walk(read_json(file.text, file.name, Errors(), "")))
    event(f"leaves: {min(len(leaves) // 5 * 5, 20)}")
    silent = [
        leaf.text
        for leaf, around in leaves
        if leaf.text not in texts | named
        and leaf.place not in own
        and not {*around[-1:]} & own
        and not {*around} & whole
    ]
    assert silent == [], source
