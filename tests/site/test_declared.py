"""Modules and kinds that a site file declares: as values, or as errors that say where."""

import asyncio
from pathlib import Path

import pytest

from haptera.kinds import KINDS
from haptera.model.answers.finding import Rule
from haptera.model.entity import EntityId
from haptera.model.errors import ConflictError, InputError
from haptera.modules.declared.module import declared
from haptera.rest.schemas import SiteFile
from haptera.site import Sites, parse_site
from haptera.site.apply.proposal import answer
from haptera.site.lint.lint import lint_site

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/platform/site.yaml"


@pytest.fixture(autouse=True)
def _no_kinds_left():
    yield
    KINDS.declare({})


def read(text):
    return parse_site([SiteFile("site.yaml", text)], {"site": "/srv"})


def changed(old, new):
    text = EXAMPLE.read_text("utf-8")
    assert old in text
    return text.replace(old, new, 1)


def test_the_example_is_read_with_entities_of_the_kind_that_it_declares():
    site = read(EXAMPLE.read_text("utf-8"))
    wanted = {one.entity: one.desired for one in site.entities}

    assert [one.name for one in site.own] == ["platform"]
    assert wanted[EntityId("appliance", "a1", None)] == {"run": "serving", "version": "1.0"}


def test_it_is_written_out_and_read_again_as_the_same():
    own = read(EXAMPLE.read_text("utf-8")).own

    text = Sites("appliances", (), (), own).export([], None)

    assert read(text).own == own


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("every_s: 2\n", "every: 2\n", "site.yaml:29:11", "unknown field `every`"),
        ("every_s: 2\n", "every_s: soon\n", "site.yaml:34:20", "Expected `float`"),
        ("list: all", "list: some", "site.yaml:", "there is no list 'some'"),
        ("HALTED: halted", "HALTED: asleep", "site.yaml:", "is never 'asleep'"),
        ("/v1/appliances/{name}/boot", "/v1/{id}/boot", ":", "nothing is called {id}"),
        ("/v1/appliances/{name}/boot", "v1/boot", ":", "is no path"),
        ("127.0.0.1:8470", "me:pw@127.0.0.1", ":", "has a password in it"),
        ("http://127.0.0.1:8470", "file:///etc/passwd", ":", "is none of an API"),
        ("context: parent", "context: self", ":", "runs at the parent"),
        ("at: state\n", "at: state[\n", ":", "is no path into an answer"),
        ("kind: appliance", "kind: applianc", ":", "there is no kind 'applianc'"),
        ("of: current", "of: run", ":", "compares what cannot be compared"),
        ("run: [halted,", "run: [Halted,", "site.yaml:", "is no value of appliance.run"),
        ("from: {run: halted}", "from: {power: on}", ":", "is not changed"),
        ("late_s: 3", "late_s: 100000", "site.yaml:", "100000.0 s is out of bounds"),
        ("    serves: {run: serving} ", "    #", ":", "disruptive, and nothing could ever permit"),
    ],
)
def test_what_cannot_be_meant_is_an_error_with_its_place(old, new, where, what):
    with pytest.raises(InputError) as error:
        read(changed(old, new))
    found = [one for one in error.value.errors if what in str(one)]
    assert found, str(error.value)
    assert where in str(found[0].where)


def test_lint_shows_a_way_that_is_missing_by_an_example():
    text = changed("        roll_back:\n", "        retired:\n").replace(
        "run: broken}", "run: halted}"
    )
    site = read(text)

    found = [one.finding for one in lint_site(site, [_manifest(one) for one in site.own])]

    assert [one.rule for one in found if "broken" in one.text] == [
        Rule.DEAD_END,
        *[Rule.NO_WAY_FROM] * 2,
    ]


def test_a_parent_that_was_started_without_a_kind_says_so_instead_of_applying():
    async def apply():
        async def elsewhere(question):
            said = await asyncio.to_thread(answer, question)
            KINDS.declare({})
            return said

        sites = Sites("appliances", work=elsewhere)
        await sites.read([SiteFile("site.yaml", EXAMPLE.read_text("utf-8"))], {})

    with pytest.raises(ConflictError, match="was started without it"):
        asyncio.run(apply())


def _manifest(place):
    return declared(place.name, place.declares).manifest()
