"""Whole sites as people could write them: as plain data, as YAML, as JSON."""

import json

import yaml
from hypothesis import strategies as st

from haptera.rest.schemas import SiteFile

NAMES = ["login", "r1n1", "r1n2", "r2n1", "r2n2"]
# Node-sets of which no two have a node in common.
SETS = ["login", "r1n[1-2]", "r2n1", "r2n[2]"]
PLACES = {"login": "login", "r1n[1-2]": "@one", "r2n1": "@two&r2n1", "r2n[2]": "@two!r2n1"}
GROUPS = {"one": "r1n[1-2]", "two": "r2n[1-2]", "all": "@one,@two,login"}

texts = st.text("ab -_.é\"'#:[]{}\\\n", max_size=6).map(
    lambda text: text.replace("{", "{{").replace("}", "}}")
)
templates = st.sampled_from(["{name}", "10.1.{index}.7", "{{x}} {name}", "{site}"]) | texts
numbers = st.integers(0, 70_000)
ports = st.integers(1, 65_535)


def some(**values):
    """Some of these keys."""
    return st.fixed_dictionaries({}, optional=values)


node_attributes = some(
    rack=templates, bmc=templates, platform=st.sampled_from(["lab", "p{index:02}"]), if_lost=texts
)
node_desired = some(power=st.sampled_from(["on", "off"]), agent=st.just("up"))
service_data = some(command=templates, port=ports)
service_desired = some(
    run=st.sampled_from(["running", "stopped"]),
    command=templates,
    port=ports | st.just("80{index}"),
)
module_terms = some(
    enabled=st.booleans(),
    version=texts,
    settings=st.dictionaries(st.sampled_from("ab"), numbers | texts | st.booleans(), max_size=2),
)
layers = some(
    attributes=node_attributes,
    desired=node_desired,
    services=some(web=service_desired),
    modules=some(service=module_terms),
)
policies = st.lists(
    st.fixed_dictionaries(
        {"for": st.sampled_from(["r1*", "login", "*"]), "attempts": st.integers(1, 9)},
        optional={"within": st.sampled_from(["90s", "1h"]), "parts": st.just("labnode")},
    ),
    max_size=2,
)
budgets = st.dictionaries(
    st.sampled_from(["slow", "few"]),
    st.fixed_dictionaries({"per": st.just("node"), "share": st.sampled_from([5, "7%"])}),
    max_size=2,
)


@st.composite
def sites(draw):
    """A site as plain data; what it says can be."""
    profiles = draw(st.dictionaries(st.sampled_from(["p", "q", "r"]), layers))
    lists = st.lists(st.sampled_from(sorted(profiles)), unique=True) if profiles else st.just([])

    def entry(attributes):
        return attributes | ({"profiles": draw(lists)} if draw(st.booleans()) else {})

    nodes = {one: entry(draw(node_attributes)) for one in SETS}
    spelt = st.sampled_from([SETS, [PLACES[one] for one in SETS]])
    keys = [one for one in draw(spelt) if draw(st.booleans())]
    desired = {one: draw(node_desired) for one in keys}
    desired |= {f"web@{one}": draw(service_desired) for one in draw(spelt) if draw(st.booleans())}
    whole = {
        "groups": GROUPS,
        "defaults": draw(layers),
        "profiles": profiles,
        "nodes": nodes,
        "services": {"web": draw(service_data)},
        "desired": desired,
        "policies": draw(policies),
        "budgets": draw(budgets),
        "modules": draw(
            st.just(["service", "labnode"]) | st.fixed_dictionaries({"service": module_terms})
        ),
    }
    kept = {"groups", "nodes", "services", "profiles", "modules"}
    left_out = draw(st.sets(st.sampled_from(sorted(whole.keys() - kept))))
    return {"cluster": "quick"} | {key: one for key, one in whole.items() if key not in left_out}


def as_yaml(site, name="site.yaml"):
    # A copy shares nothing, and needs no anchors.
    own = json.loads(json.dumps(site))
    return SiteFile(name, yaml.safe_dump(own, sort_keys=False, allow_unicode=True))


def as_json(site, name="site.yaml"):
    return SiteFile(name, json.dumps(site))
