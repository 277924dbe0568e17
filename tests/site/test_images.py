"""Images in a site: on no node, there for being desired, and written out as they were read."""

import pytest

from haptera.core.desired.ownership import Claim
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId
from haptera.model.errors import InputError
from haptera.rest.schemas import SiteFile
from haptera.site import parse_site
from haptera.site.apply.changes import changes
from haptera.site.apply.export import StartedWith, export
from tests.site.test_export import stored

DEBIAN = EntityId("image", "debian-a", None)
SITE = """\
cluster: quick
nodes: {n1: {}}
desired:
  image:debian-a: {state: built, recipe: "{site}/{{a}}"}
  system:compute@n1: {run: running, image: debian-a}
"""


def site(text):
    return parse_site([SiteFile("site.yaml", text)], {"site": "/srv"})


def wrong(text):
    with pytest.raises(InputError) as caught:
        site(text)
    return [(one.what, one.do) for one in caught.value.errors]


def test_an_image_is_declared_by_being_desired_and_its_recipe_is_filled():
    recipe = SetDesired(DEBIAN, "recipe", "/srv/{a}", "site")
    state = SetDesired(DEBIAN, "state", "built", "site")
    of_image = [one for one in changes(site(SITE), ()) if one.entity == DEBIAN]
    assert of_image == [Declare(DEBIAN, {}, "site"), recipe, state]


def test_what_is_in_force_reads_back_and_changes_nothing():
    system = EntityId("system", "compute", "n1")
    held = [
        stored(EntityId("node", "n1", "n1")),
        stored(DEBIAN, state="built", recipe="/srv/{a}"),
        stored(system, run="running", image="debian-a"),
    ]
    text = export("quick", StartedWith(("image", "system")), held, None)
    assert changes(site(text), held, Claim.LEAVE) == ()


def test_an_image_is_on_no_node():
    assert wrong(SITE.replace("image:debian-a:", "image:debian-a@n1:")) == [
        ("debian-a belongs to the whole cluster, not to a node", "write image:debian-a"),
    ]


def test_its_recipe_knows_nothing_of_nodes():
    assert wrong(SITE.replace("{site}", "{node}")) == [
        ("unknown placeholder {node}", "there are name, site"),
    ]


def test_only_what_is_the_clusters_stands_without_a_node():
    ((what, do),) = wrong(SITE.replace("system:compute@n1:", "system:compute:"))
    assert what == "'system:compute' selects nothing"
    assert "image:NAME" in do
