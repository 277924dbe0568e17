"""What of the desired state goes down to a parent below."""

import pytest

from haptera.core.sync.relay import relayed
from haptera.model.changes import Desired, StoredEntity
from haptera.model.entity import EntityId, node_id


def stored(entity: EntityId, parents: str = "", **desired: str) -> StoredEntity:
    attributes = {"parents": parents} if parents else {}
    return StoredEntity(
        entity, attributes, "site", {name: Desired(one, "site") for name, one in desired.items()}, 1
    )


@pytest.mark.parametrize(
    ("named", "images"),
    [
        ({"image": "a"}, {"a"}),
        ({"image": "a", "spare": "b"}, {"a", "b"}),
        ({"image": "sha256:00"}, {"a", "b", "c"}),
        ({}, set()),
    ],
)
def test_a_parent_has_the_images_that_its_nodes_are_to_run(
    named: dict[str, str], images: set[str]
) -> None:
    every = [
        stored(node_id("n1"), "m1"),
        stored(node_id("n2"), "m2"),
        stored(EntityId("system", "compute", "n1"), **named),
        stored(EntityId("system", "compute", "n2"), image="c"),
        *(stored(EntityId("image", one, None), recipe=f"/srv/{one}") for one in "abc"),
        stored(EntityId("module", "image", None), settings="{}"),
    ]

    found = relayed(every, "m1")

    built = {one.name for one, told in found.items() if "recipe" in told.desired}
    absent = {
        one.name
        for one, told in found.items()
        if told.desired == {"state": Desired("absent", "site")}
    }
    assert (built, absent) == (images, {"a", "b", "c"} - images)
    assert EntityId("module", "image", None) in found
