"""What applying a site file changes: its own, all of its own, and nothing of anybody else's."""

import asyncio
import copy

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.core.desired.ownership import Claim
from haptera.model.changes import (
    Declare,
    Desired,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code, ConflictError, InputError
from haptera.rest.schemas import SiteFile
from haptera.site import Site, SiteEntity, Sites, changes
from haptera.site.apply.difference import difference

N1, N2 = node_id("n1"), node_id("n2")
WEB1 = EntityId("service", "web", "n1")


def site(*entities):
    return Site("quick", tuple(SiteEntity(*entity) for entity in entities), ("service",), {})


def stored(entity, attributes=None, owner="site", **desired):
    values = {name: Desired(value, who) for name, (value, who) in desired.items()}
    return StoredEntity(entity, attributes or {}, owner, values, 1)


def test_taken_the_site_owns_all_that_it_says_and_no_more():
    current = [
        stored(N1, power=("off", "user:eve"), busy=("free", "user:eve"), agent=("up", "user:eve")),
        stored(N2, {"rack": "1"}, owner="controller:place"),
    ]
    wanted = site((N1, {}, {"power": "on", "agent": "up"}), (N2, {"rack": "1"}, {}))
    assert changes(wanted, current, Claim.TAKE) == (
        SetDesired(N1, "agent", "up", "site"),
        SetDesired(N1, "power", "on", "site"),
        Declare(N2, {"rack": "1"}, "site"),
    )


def test_taken_a_node_goes_with_all_that_others_have_on_it():
    current = [stored(N1, power=("on", "user:eve")), stored(WEB1, owner="user:bob"), stored(N2)]
    wanted = site((N2, {}, {}))
    assert changes(wanted, current, Claim.TAKE) == (Undeclare(WEB1), Undeclare(N1))


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
        "node:n1 would be removed, but its power belongs to user:eve",
        "service:web@n1 is user:bob's, but its node would be removed",
    ]


def test_a_site_file_of_another_cluster_changes_nothing():
    with pytest.raises(InputError, match="cluster other; this parent has cluster quick") as refused:
        quick("cluster: other")
    assert refused.value.code == Code.WRONG_CLUSTER
    assert quick("cluster: quick\nnodes: {n1: }") == (Declare(N1, {}, "site"),)


def quick(text):
    read = asyncio.run(Sites("quick").read([SiteFile("site.yaml", text)], {}))
    return read.changes([], Claim.LEAVE)


ENTITIES = [N1, N2, node_id("n3"), WEB1, EntityId("service", "web", "n2")]
values = st.sampled_from(["on", "off"])
attributes = st.dictionaries(st.just("rack"), st.sampled_from(["1", "2"]))


# Each on a node that is there too.
standing = st.sets(st.sampled_from(ENTITIES)).map(
    lambda some: some | {node_id(one.node) for one in some}
)


@st.composite
def sites(draw):
    entities = draw(standing)
    names = st.dictionaries(st.sampled_from(["a", "b", "c"]), values)
    return site(*((entity, draw(attributes), draw(names)) for entity in sorted(entities)))


@st.composite
def stores(draw):
    owners = st.sampled_from(["site", "site", "site", "user:eve"])
    desired = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.builds(Desired, values, owners))
    return {
        entity: StoredEntity(entity, draw(attributes), draw(owners), draw(desired), 1)
        for entity in sorted(draw(standing))
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
def test_taking_makes_all_of_it_so_and_the_sites(wanted, current):
    after = applied(current, changes(wanted, current.values(), Claim.TAKE))

    for one in wanted.entities:
        held = after[one.entity]
        assert (held.owner, held.attributes) == ("site", one.attributes)
        assert {name: held.desired[name] for name in one.desired} == {
            name: Desired(value, "site") for name, value in one.desired.items()
        }
    said = {(one.entity, name) for one in wanted.entities for name in one.desired}
    left = {key: one for key, one in foreign(current).items() if key not in said}
    assert foreign(after) == {key: one for key, one in left.items() if key[0] in after}
    assert changes(wanted, after.values(), Claim.TAKE) == ()
    assert [*difference(wanted, after.values())] == []


@given(sites(), stores())
def test_what_differs_is_what_applying_would_change_or_be_refused_for(wanted, current):
    found = [*difference(wanted, current.values())]
    try:
        some = changes(wanted, current.values())
    except InputError:
        assert any(one.owner is not None for one in found)
        return
    event("something" if some else "nothing")
    assert bool(found) == bool(some)
    assert all(one.owner is None for one in found)
    before, after = (told(store) for store in (current, applied(current, some)))
    assert {(one.entity, one.name, one.before, one.after) for one in found} == {
        (*key, before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }


def told(store):
    """Each value there is, by entity and name; an entity itself under None."""
    found = {(str(entity), None): "declared" for entity in store}
    for entity, one in store.items():
        found |= {(str(entity), name): text for name, text in one.attributes.items()}
        found |= {(str(entity), name): held.value for name, held in one.desired.items()}
    return found


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


def test_what_stands_against_many_nodes_alike_is_one_line():
    nodes = [node_id(f"n{number}") for number in range(1, 1001)]
    current = [stored(one, power=("off", "user:eve")) for one in nodes]
    wanted = site(*((one, {}, {"power": "on"}) for one in nodes))
    assert conflicts_of(wanted, current) == [
        "power of node:n[1-1000] belongs to user:eve, who wants off"
    ]
