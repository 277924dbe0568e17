"""Modules of one's own in a site: where they are, where they run, and what names them."""

import pytest

from haptera.model.entity import EntityId
from haptera.model.errors import InputError
from haptera.model.parts import Context
from haptera.rest.schemas import SiteFile
from haptera.runtime.processes.places import ModulePlace
from haptera.site import Sites, parse_site

SITE = """\
cluster: own
nodes: {'n[1-2]': {}}
modules:
  labnode: {}
  outlet: {place: my.outlets:module, context: parent, settings: {pause_s: 2}}
  lamp: {exec: [./serve, "--fast"], context: self, enabled: true}
desired:
  module:outlet: {version: "2"}
  module:lamp@n1: {run: stopped}
policies: [{for: n1, parts: outlet.on, attempts: 2}]
"""
OWN = (
    ModulePlace("outlet", Context.PARENT, "/srv", place="my.outlets:module"),
    ModulePlace("lamp", Context.SELF, "/srv", command=("./serve", "--fast")),
)


def read(text):
    return parse_site([SiteFile("site.yaml", text)], {"site": "/srv"})


def test_modules_of_ones_own_are_placed_and_desired_like_any_other():
    site = read(SITE)
    wanted = {str(one.entity): one.desired for one in site.entities if one.entity.kind == "module"}

    assert (site.modules, site.own) == (("labnode",), OWN)
    assert wanted == {
        "module:outlet": {"settings": '{"pause_s":2}', "version": "2"},
        "module:lamp@n1": {"run": "stopped"},
        "module:lamp@n2": {"run": "running"},
    }
    assert site.entities[-1].entity == EntityId("policy", "site-1", None)


def test_they_are_written_out_with_their_places():
    text = Sites("own", ("labnode",), (), OWN).export([], None)

    assert text.endswith(
        "modules:\n"
        "  labnode: {}\n"
        '  outlet: {place: "my.outlets:module", context: parent}\n'
        '  lamp: {exec: ["./serve", "--fast"], context: self}\n'
    )
    assert (read(text).modules, read(text).own) == (("labnode",), OWN)


@pytest.mark.parametrize(
    ("modules", "where", "what"),
    [
        ("[outlet]", "2:11", "there is no module 'outlet'"),
        ("{outlet: {enabled: true}}", "2:11", "there is no module 'outlet'"),
        ("{outlet: {place: a:b}}", "2:11", "the context of outlet is missing"),
        ("{outlet: {context: parent}}", "2:11", "there is no module 'outlet'"),
        ("{o: {place: a:b, exec: c, context: self}}", "2:11", "o needs either a place or an exec"),
        ("{o: {place: a-b:c, context: self}}", "2:22", "'a-b:c' is not a place"),
        ("{o: {place: a, context: self}}", "2:22", "'a' is not a place"),
        ("{o: {place: [a:b], context: self}}", "2:22", "a value is expected here"),
        ("{o: {exec: [], context: self}}", "2:21", "a command has 1 to 64 words"),
        ("{o: {exec: a, context: node}}", "2:33", "nothing runs at 'node'"),
        ("{labnode: {place: a:b, context: self}}", "2:11", "labnode comes with haptera"),
        ("{a b: {place: a:b, context: self}}", "2:11", "'a b' is not a name"),
        ("{o: {place: a:b, context: self, plac: 1}}", "2:48", "unknown key plac"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(modules, where, what):
    with pytest.raises(InputError) as raised:
        read(f"cluster: own\nmodules: {modules}\n")
    (error,) = raised.value.errors
    assert error.where == f"site.yaml:{where}"
    assert error.what.startswith(what)
    assert error.do


def test_a_controller_and_a_module_have_different_names():
    with pytest.raises(InputError, match="outlet is a module"):
        read(SITE + "controllers: {outlet: {place: a:b}}\n")
