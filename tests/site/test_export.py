"""What is in force as a site file: it reads as people would write it, and applies to nothing."""

import asyncio
import copy

from hypothesis import event, given
from hypothesis import strategies as st

from haptera.core.desired.ownership import Claim
from haptera.kinds import KINDS
from haptera.model.changes import Desired, StoredEntity
from haptera.model.entity import EntityId, node_id
from haptera.rest.schemas import SiteFile
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.site import Sites, parse_site
from haptera.site.syntax.yaml_text import KEY_CHARS_MAX

PLACE = ControllerPlace("keep", "keep:controller", "/srv", {"count": 3, "nodes": ["n1", "on"]})
SITES = Sites("quick", ("labnode", "service"), (PLACE,))


def stored(entity, attributes=None, owner="site", **desired):
    values = {
        name: one if isinstance(one, Desired) else Desired(one, "site")
        for name, one in desired.items()
    }
    return StoredEntity(entity, attributes or {}, owner, values, 1)


def by(owner, value):
    return Desired(value, owner)


def service(name, node):
    return EntityId("service", name, node)


STORE = [
    *(stored(node_id(f"r{r}n{n}"), {"rack": f"r{r}", "platform": "lab"}, power="on")
      for r in (1, 2) for n in (1, 2)),
    stored(node_id("login"), {"bmc": "10.0.0.1:{n}"}, owner="controller:find"),
    stored(node_id("r1n3"), power=by("user:eve", "off"), agent="up"),
    *(stored(service("web", f"r1n{n}"), run="running", port=80, command='"{x}" a # b')
      for n in (1, 2)),
    stored(service("idle", "login")),
    stored(EntityId("module", "service", "r1n1"), settings='{"grace_s": 5}'),
    stored(EntityId("module", "labnode", None), run=by("user:bob", "stopped")),
    stored(EntityId("policy", "b", None), rank=1, of="n*", cool_down_ms=5_400_000, attempts=2),
    stored(EntityId("policy", "a", None), rank=2, of="login", within_ms=250),
    stored(EntityId("budget", "slow", None), per="node", share=by("user:eve", 10)),
    stored(EntityId("freeze", "f0", None), owner="user:eve", of=by("user:eve", "n1")),
]  # fmt: skip

TEXT = """\
# cannot stand in a site file: freeze:f0
cluster: quick

nodes:
  login: {bmc: "10.0.0.1:{{n}}"}  # declared by controller:find
  r1n3: {}
  r1n[1-2]: {rack: r1}
  r2n[1-2]: {rack: r2}
  r[1-2]n[1-2]: {platform: lab}

services:
  idle: {}
  web: {}

desired:
  idle@login: {}
  module:labnode: {run: stopped}  # run by user:bob
  module:service@r1n1: {settings: "{{\\"grace_s\\": 5}}"}
  r1n3: {agent: up, power: off}  # power by user:eve
  r[1-2]n[1-2]: {power: on}
  web@r1n[1-2]: {command: "\\"{{x}}\\" a # b", port: 80, run: running}

policies:
  b: {for: "n*", attempts: 2, cool_down: 90m}
  a: {for: login, within: 250ms}

budgets:
  slow: {per: node, share: 10}  # share by user:eve

modules: [labnode, service]

controllers:
  keep: {place: "keep:controller", settings: {"count": 3, "nodes": [n1, on]}}
"""


def applied(text, current):
    site = asyncio.run(SITES.read([SiteFile("site.yaml", text)], {"site": "/srv"}))
    return site.changes(current, Claim.LEAVE)


def test_all_that_is_in_force_is_written_and_says_whose_it_is():
    assert SITES.export(STORE, None) == TEXT


def test_what_one_owner_has_is_written_with_the_nodes_that_it_is_on():
    assert SITES.export(STORE, "user:eve").splitlines()[:14] == [
        "# cannot stand in a site file: freeze:f0",
        "cluster: quick",
        "",
        "nodes:",
        "  r1n3: {}",
        "",
        "desired:",
        "  r1n3: {power: off}  # power by user:eve",
        "",
        "budgets:",
        "  slow: {share: 10}  # share by user:eve",
        "",
        "modules: [labnode, service]",
        "",
    ]


def test_it_reads_back_and_applies_to_nothing():
    site = parse_site([SiteFile("site.yaml", TEXT)], {"site": "/srv"})

    assert site.controllers == (PLACE,)
    assert site.modules == ("labnode", "service")
    assert applied(TEXT, STORE) == ()


def test_what_changes_on_one_node_changes_few_lines():
    before = SITES.export(STORE, None).splitlines()
    store = [one for one in STORE if one.entity != node_id("r2n2")]
    other = stored(node_id("r2n2"), {"rack": "r2", "platform": "lab"}, power="off")
    after = SITES.export([*store, other], None).splitlines()

    assert [line for line in before if line not in after] == ["  r[1-2]n[1-2]: {power: on}"]
    assert [line for line in after if line not in before] == [
        "  r1n[1-2],r2n1: {power: on}",
        "  r2n2: {power: off}",
    ]


def test_nodes_that_fold_badly_are_written_in_keys_that_yaml_takes():
    store = [stored(node_id(f"n{n * n}"), {"rack": "r"}, power="on") for n in range(400)]
    text = SITES.export(store, None)

    assert max(len(line.partition(": ")[0]) for line in text.splitlines()) < KEY_CHARS_MAX + 9
    assert applied(text, store) == ()


names = st.sampled_from(["n1", "n2", "n10", "r1n1", "r1n02", "r2n2", "login", "7", "true"])
# Nothing that cannot be displayed: no site file takes that.
texts = st.text("ab {}[]#:,'\"\\é☃\U0001f600\n\t-0", max_size=5)
owners = st.sampled_from(["site", "site", "site", "user:eve", "controller:place"])
REAL = {
    "power": st.sampled_from(["on", "off"]), "agent": st.just("up"),
    "run": st.sampled_from(["running", "stopped"]), "command": texts,
    "port": st.integers(1, 65_535), "version": texts, "settings": st.just('{"a": [1e22, "{"]}'),
}  # fmt: skip
NAMED = {"node": ("power", "agent"), "service": ("run", "command", "port"),
         "module": ("run", "version", "settings")}  # fmt: skip


@st.composite
def stores(draw):
    def held(kind):
        wanted = draw(st.sets(st.sampled_from(NAMED[kind])))
        return {name: Desired(draw(REAL[name]), draw(owners)) for name in sorted(wanted)}

    found = [StoredEntity(EntityId("module", "labnode", None), {}, draw(owners), held("module"), 1)]
    for name in sorted(draw(st.sets(names))):
        attributes = draw(st.dictionaries(st.sampled_from(["rack", "platform", "bmc"]), texts))
        found.append(StoredEntity(node_id(name), attributes, draw(owners), held("node"), 1))
        for kind, one in draw(st.sets(st.sampled_from(
            [("service", "web"), ("service", "null"), ("module", "service")]
        ))):  # fmt: skip
            found.append(StoredEntity(EntityId(kind, one, name), {}, draw(owners), held(kind), 1))
    return found


@given(stores())
def test_any_state_written_out_applies_to_nothing_and_is_written_out_the_same(store):
    kept = copy.deepcopy(store)
    text = SITES.export(store, None)
    event(f"entities {min(len(store), 4)}")

    assert applied(text, store) == ()
    assert SITES.export(reversed(store), None) == text
    assert store == kept
    # What only the site has, its own part alone puts there anew.
    if all(one.owner == "site" for one in store):
        mine = SITES.export(store, "site")
        left = [one for one in store if one.entity.kind != "module" or one.desired]
        ours = {
            (one.entity, name)
            for one in left for name, held in one.desired.items() if held.owner == "site"
        }  # fmt: skip
        wanted = parse_site([SiteFile("s", mine)], {}).entities
        assert {(one.entity, name) for one in wanted for name in one.desired} == ours
        assert {one.entity for one in wanted} >= {one.entity for one in left}
    assert set(NAMED) <= set(KINDS)
