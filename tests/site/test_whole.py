"""Values of an entity in a site file that mean nothing together, by the kind's own declaration."""

import pytest

from haptera.kinds import KINDS
from haptera.model.errors import InputError
from haptera.rest.schemas import SiteFile
from haptera.site import parse_site

SITE = """\
cluster: quick
modules: [replica]
nodes: {{"n[1-3]": {{platform: labnode}}}}
desired:
  "{kind}:one": {{{values}}}
"""
# Of each kind that has something to say of the whole, values that it refuses, and why.
WRONG = {
    "group": ('replicas: 2, command: "true", version: trial', "it has no trial"),
    "health-rule": ("grade: degraded", "it has no pipeline"),
    "power-cap": ("leads: node:n1", "it limits nothing"),
}
# Read from a key of their own, which says so where it is read.
ELSEWHERE = {"budget"}


def test_each_kind_that_has_something_to_say_is_tried() -> None:
    assert {name for name, kind in KINDS.items() if kind.whole} == WRONG.keys() | ELSEWHERE


@pytest.mark.parametrize("kind", WRONG)
def test_values_that_mean_nothing_together_are_refused_in_their_place(kind: str) -> None:
    values, why = WRONG[kind]
    text = SITE.format(kind=kind, values=values)
    with pytest.raises(InputError) as refused:
        parse_site([SiteFile("site.yaml", text)], {})
    assert why in str(refused.value)
    assert "site.yaml:5:3" in str(refused.value)
