"""What applying a site file changes: its own, all of its own, and nothing of anybody else's."""

import copy

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.api.shapes import SiteFile
from haptera.config import Site, SiteEntity, changes, site_changes
from haptera.model.changes import (
    Declare,
    Desired,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import ConflictError, InputError

N1, N2 = node_id("n1"), node_id("n2")
WEB1 = EntityId("service", "web", "n1")


def site(*entities):
    return Site("quick", tuple(SiteEntity(*entity) for entity in entities), ("service",), {})


def stored(entity, attributes=None, owner="site", **desired):
    values = {name: Desired(value, who) for name, (value, who) in desired.items()}
    return StoredEntity(entity, attributes or {}, owner, values, 1)


def conflicts_of(some_site, current):
    with pytest.raises(InputError) as raised:
        changes(some_site, current)
    assert all(isinstance(error, ConflictError) and error.do for error in raised.value.errors)
    return [error.what for error in raised.value.errors]


def test_all_of_a_new_site_is_declared_nodes_first_and_then_desired():
    wanted = site((WEB1, {}, {"port": 80}), (N1, {"rack": "1"}, {"power": "on"}))
    assert changes(wanted, []) == (
        Declare(N1, {"rack": "1"}, "site"),
        SetDesired(N1, "power", "on", "site"),
        Declare(WEB1, {}, "site"),
        SetDesired(WEB1, "port", 80, "site"),
    )


def test_what_is_so_already_is_not_written_again():
    current = [stored(N1, {"rack": "1"}, power=("on", "site"), busy=("free", "user:eve"))]
    assert changes(site((N1, {"rack": "1"}, {"power": "on"})), current) == ()


def test_what_the_site_no_longer_says_is_pruned_services_before_their_node():
    current = [
        stored(N1, power=("on", "site")),
        stored(WEB1, port=(80, "site")),
        stored(N2, power=("on", "site"), busy=("free", "user:eve")),
    ]
    assert changes(site((N2, {}, {})), current) == (
        Undeclare(WEB1),
        Undeclare(N1),
        UnsetDesired(N2, "power"),
    )


def test_a_changed_attribute_declares_anew():
    assert changes(site((N1, {"rack": "2"}, {})), [stored(N1, {"rack": "1"})]) == (
        Declare(N1, {"rack": "2"}, "site"),
    )


def test_what_belongs_to_others_is_neither_taken_nor_dropped_and_they_are_named():
    current = [
        stored(N1, power=("off", "user:eve")),
        stored(N2, {"rack": "1"}, owner="controller:place"),
    ]
    wanted = site((N1, {}, {"power": "on"}), (N2, {"rack": "2"}, {}))
    assert conflicts_of(wanted, current) == [
        "power of node:n1 belongs to user:eve, who wants off",
        "node:n2 was declared by controller:place",
    ]
    held = [stored(N1, power=("off", "user:eve")), stored(N2), stored(WEB1, owner="user:bob")]
    assert conflicts_of(site(), held) == [
        "node:n1 would go, but power of it belongs to user:eve",
        "node:n1 would go, but user:bob has service:web@n1 on it",
    ]


def test_a_site_file_of_another_cluster_changes_nothing():
    with pytest.raises(ConflictError, match="of cluster other; here is cluster quick"):
        site_changes([SiteFile("site.yaml", "cluster: other")], {}, [], "quick")
    assert site_changes(
        [SiteFile("site.yaml", "cluster: quick\nnodes: {n1: }")], {}, [], "quick"
    ) == (Declare(N1, {}, "site"),)


ENTITIES = [N1, N2, node_id("n3"), WEB1, EntityId("service", "web", "n2")]
values = st.sampled_from(["on", "off"])
attributes = st.dictionaries(st.just("rack"), st.sampled_from(["1", "2"]))


@st.composite
def sites(draw):
    entities = draw(st.sets(st.sampled_from(ENTITIES)))
    names = st.dictionaries(st.sampled_from(["a", "b", "c"]), values)
    return site(*((entity, draw(attributes), draw(names)) for entity in sorted(entities)))


@st.composite
def stores(draw):
    owners = st.sampled_from(["site", "site", "site", "user:eve"])
    desired = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.builds(Desired, values, owners))
    return {
        entity: StoredEntity(entity, draw(attributes), draw(owners), draw(desired), 1)
        for entity in sorted(draw(st.sets(st.sampled_from(ENTITIES))))
    }


def applied(current, some):
    """The plainest store there is."""
    after = copy.deepcopy(current)
    for change in some:
        match change:
            case Declare(entity, attributes, owner):
                held = after[entity].desired if entity in after else {}
                after[entity] = StoredEntity(entity, attributes, owner, held, 2)
            case Undeclare(entity):
                del after[entity]
            case SetDesired(entity, name, value, owner):
                after[entity].desired[name] = Desired(value, owner)
            case UnsetDesired(entity, name):
                del after[entity].desired[name]
    return after


def foreign(current):
    return {
        (one.entity, name): desired
        for one in current.values()
        for name, desired in one.desired.items()
        if desired.owner != "site"
    }


@given(sites(), stores())
def test_applying_makes_it_so_twice_changes_nothing_and_others_keep_theirs(wanted, current):
    try:
        some = changes(wanted, current.values())
    except InputError:
        event("refused")
        return
    after = applied(current, some)
    event(f"changes: {min(len(some), 3)}")
    for one in wanted.entities:
        assert after[one.entity].attributes == one.attributes
        assert {name: after[one.entity].desired[name].value for name in one.desired} == one.desired
    ours = {one.entity: set(one.desired) for one in wanted.entities}
    for entity, held in after.items():
        owned = {name for name, desired in held.desired.items() if desired.owner == "site"}
        assert owned <= ours.get(entity, set())
    assert foreign(after) == foreign(current)
    assert changes(wanted, after.values()) == ()
