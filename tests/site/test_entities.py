"""Entities besides nodes: declared with attributes, named by node-sets, and exported as such."""

import pytest

from haptera.model.changes import Desired, SetDesired, StoredEntity
from haptera.model.entity import EntityId
from haptera.model.errors import InputError
from haptera.rest.schemas import SiteFile
from haptera.site import parse_site
from haptera.site.apply.changes import changes
from haptera.site.apply.export import StartedWith, export
from haptera.site.model.site import Site

SITE = """\
cluster: c
nodes: {"n[1-2]": {rack: "r{n}"}}
entities:
  "instance:i[1-3]": {provider: "p{i}", at: "{provider}.example", owner: "{name}-{rack}"}
  "instance:spare": {}
desired:
  "instance:i[1-2]": {exist: present, size: "s{1}"}
  "image:a,b": {state: built, recipe: "/srv/{name}"}
modules: []
"""
PLAIN = SITE.replace(', owner: "{name}-{rack}"', "")


def site(text: str) -> Site:
    return parse_site([SiteFile("site.yaml", text)], {"site": "/"})


def wrong(entities: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        site(f"cluster: c\nnodes: {{n1: {{}}}}\nmodules: []\nentities:\n  {entities}\n")
    return [str(one) for one in caught.value.errors]


def instance(name: str) -> EntityId:
    return EntityId("instance", name, None)


def test_entities_of_the_cluster_are_named_by_node_sets_and_have_attributes_and_settings() -> None:
    told = {
        one.entity: (dict(one.attributes), dict(one.desired))
        for one in site(PLAIN).entities
        if one.entity.kind in ("instance", "image")
    }
    assert told == {
        instance("i1"): (
            {"provider": "p1", "at": "p1.example"},
            {"exist": "present", "size": "s1"},
        ),
        instance("i2"): (
            {"provider": "p2", "at": "p2.example"},
            {"exist": "present", "size": "s2"},
        ),
        instance("i3"): ({"provider": "p3", "at": "p3.example"}, {}),
        instance("spare"): ({}, {}),
        EntityId("image", "a", None): ({}, {"state": "built", "recipe": "/srv/a"}),
        EntityId("image", "b", None): ({}, {"state": "built", "recipe": "/srv/b"}),
    }


def test_what_is_exported_reads_back_and_changes_nothing() -> None:
    wanted = site(PLAIN)
    stored = [
        StoredEntity(
            one.entity,
            dict(one.attributes),
            "site",
            {name: Desired(value, "site") for name, value in one.desired.items()},
            1,
        )
        for one in wanted.entities
    ]
    text = export("c", StartedWith(()), stored, None)
    assert "  instance:spare: {}\n" in text
    assert changes(site(text), stored) == ()


def test_those_with_equal_attributes_are_exported_as_one_node_set() -> None:
    stored = [
        StoredEntity(instance(name), {"provider": "p"}, "site", {}, 1) for name in ("i1", "i2")
    ]
    text = export("c", StartedWith(()), stored, None)
    assert "entities:\n  instance:i[1-2]: {provider: p}\n" in text
    assert changes(site(text), stored) == ()


def test_an_attribute_that_changes_declares_the_entity_anew() -> None:
    stored = [StoredEntity(one.entity, {}, "site", {}, 1) for one in site(PLAIN).entities]
    changed = changes(site(PLAIN), stored)
    assert [one.entity.name for one in changed if not isinstance(one, SetDesired)] == [
        *("n1", "n2", "i1", "i2", "i3")
    ]


def test_two_files_say_more_of_the_same_entity() -> None:
    files = [
        SiteFile("a.yaml", "cluster: c\nmodules: []\nentities: {'instance:i[1-2]': {at: x}}\n"),
        SiteFile("b.yaml", "entities: {'instance:i2': {provider: p}}\n"),
    ]
    told = {one.entity.name: dict(one.attributes) for one in parse_site(files, {}).entities}
    assert told == {"i1": {"at": "x"}, "i2": {"at": "x", "provider": "p"}}


@pytest.mark.parametrize(
    ("entities", "said"),
    [
        ("'instance:i1': {rack: r1}", "a instance has no attribute 'rack'"),
        ("'instance:i1': {exist: present}", "it changes, so it is desired"),
        ("'instance:i1@n1': {}", "i1 belongs to the whole cluster, not to a node"),
        ("'instance:i[1-2': {}", "i[1-2"),
        ("'instance:@gpu': {}", "gpu"),
        ("'instance:i/1': {}", "i/1"),
        ("'coolant:r1': {}", "there is no kind 'coolant'"),
        ("n1: {rack: r1}", "write it under `nodes`"),
        ("'node:n1': {rack: r1}", "write it under `nodes`"),
        ("'node:x@n1': {rack: r1}", "write it under `nodes`"),
        ("'service:web@n1': {}", "write it under `desired`"),
        ("'web@n1': {}", "write it under `desired`"),
        ("'module:jobs@n1': {}", "write it under `modules`"),
        ("'policy:p': {}", "write it under `policies`"),
        ("'freeze:f': {}", "freeze"),
        ("'system:a': {}", "write KIND:NAMES, or KIND:NAME@NODESET"),
        ("'system:a@n2': {}", "no such node: n2"),
        ("'instance:i1': {at: '{at}'}", "attributes refer to each other in a circle"),
        ("'instance:i1': {at: '{rack}'}", "unknown placeholder {rack}"),
    ],
)
def test_what_is_wrong_is_told(entities: str, said: str) -> None:
    assert said in " ".join(wrong(entities))


def test_what_an_entity_knows_of_itself_is_not_its_node() -> None:
    with pytest.raises(InputError, match=r"unknown placeholder \{rack\}"):
        site(SITE)
