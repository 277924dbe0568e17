"""The status page: nothing from elsewhere, nothing that the policy forbids."""

import re
from importlib.resources import files

from haptera.api.guard import HEADERS

STATIC = files("haptera.web") / "static"
TEXTS = {name: (STATIC / name).read_text() for name in ("index.html", "status.css", "status.js")}


def test_the_page_loads_its_own_three_files_only():
    loaded = re.findall(r"""(?:src|href)="([^"]+)\"""", TEXTS["index.html"])
    assert [one for one in loaded if not one.startswith("data:")] == ["status.css", "status.js"]
    for name in ("status.css", "status.js"):
        assert not re.search(r"https?:|//\w+\.|@import|url\(|import\s*\(", TEXTS[name])


def test_what_comes_from_modules_is_never_taken_for_markup():
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval", TEXTS["status.js"]
    )


def test_nothing_in_the_page_needs_more_than_the_policy_allows():
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert not re.search(
        r"<style|style=|\son\w+=|<script(?! type=\"module\" src)", TEXTS["index.html"]
    )
