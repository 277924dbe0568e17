"""What the tests of imports share: an import as a site, and what was said of it."""

from pathlib import Path

from haptera.rest.schemas import SiteFile
from haptera.site.imports.site_text import site_text
from haptera.site.model.site import parse_site

SEEDS = Path(__file__).parent / "seeds"
PLANTED = "planted"


def seed(name):
    return SiteFile(name, (SEEDS / name).read_text(encoding="utf-8"))


def site_of(found):
    """The nodes of the site that was found, as haptera reads it: attributes, what is desired."""
    text = site_text(found, "imported")
    site = parse_site([SiteFile("site.yaml", text)], {"python": "p", "site": "s"})
    return {
        one.entity.name: (dict(one.attributes), dict(one.desired))
        for one in site.entities
        if one.entity.kind == "node"
    }


def groups_of(found):
    """The nodes of each group, by what the site says of each node."""
    groups = {}
    for name, (attributes, _) in site_of(found).items():
        for group in filter(None, attributes.get("groups", "").split(", ")):
            groups.setdefault(group, set()).add(name)
    return groups


def said(found):
    return [
        (str(one.sort), one.what, *one.nodes, f"{one.places[0].line}:{one.places[0].column}")
        for one in found.remarks
    ]


def nothing_planted(found):
    """Whether no secret that a test planted is in the site or in what was said."""
    return PLANTED not in site_text(found, "imported") + str([*found.remarks])
