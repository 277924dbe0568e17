"""The site files on the pages of modules that start machines: they are read, and their settings."""

import json
import re
from pathlib import Path

import pytest

from haptera.modules import load
from haptera.rest.schemas import SiteFile
from haptera.site import parse_site

PAGES = Path(__file__).resolve().parents[2] / "docs/reference"
SITES = [
    text
    for page in ("ipmi", "redfish", "netboot", "virtual-machines")
    for text in re.findall(
        r"^```yaml.*?\n(.*?)^```", (PAGES / f"{page}.md").read_text("utf-8"), re.S | re.M
    )
    if "modules:" in text
]


@pytest.mark.parametrize("text", SITES)
def test_the_settings_on_the_page_are_those_of_its_modules(text: str) -> None:
    site = parse_site([SiteFile("site.yaml", text)], {})
    given = {
        one.entity.name: json.loads(settings)
        for one in site.entities
        if one.entity.kind == "module" and (settings := one.desired.get("settings")) is not None
    }
    assert given
    for name, settings in given.items():
        # In place of a secret comes its value.
        plain = {key: "x" if isinstance(one, dict) else one for key, one in settings.items()}
        load(name).settings(plain)
