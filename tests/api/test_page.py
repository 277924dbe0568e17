"""The status page: nothing from elsewhere, nothing that the policy forbids."""

import re
from importlib.resources import files

from haptera.api.serving.guard import HEADERS

STATIC = files("haptera.web") / "static"
TEXTS = {one.name: one.read_text() for one in STATIC.iterdir()}
INDEX = TEXTS["index.html"]
SCRIPTS = {name: text for name, text in TEXTS.items() if name.endswith(".js")}


def test_the_page_loads_its_own_files_only():
    loaded = re.findall(r"""(?:src|href)="([^"]+)\"""", INDEX)
    own = ["page/status.css", "page/panel.css", "page/layout.css", "page/status.js"]
    assert [one for one in loaded if not one.startswith("data:")] == own
    for text in TEXTS.values():
        assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|@import|url\(|import\s*\(", text)


def test_each_script_is_reached_from_the_first_by_imports():
    reached, left = set(), ["status.js"]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += re.findall(r'from "\./([a-z]+\.js)"', SCRIPTS[name])
    assert reached == set(SCRIPTS)


def test_what_comes_from_modules_is_never_taken_for_markup():
    for text in SCRIPTS.values():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", text)


def test_nothing_in_the_page_needs_more_than_the_policy_allows():
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert not re.search(r"<style|style=|\son\w+=|<script(?! type=\"module\" src)", INDEX)


def test_each_element_that_a_script_asks_for_is_in_the_page():
    asked = {one for text in SCRIPTS.values() for one in re.findall(r'\bat\("([a-z-]+)"\)', text)}
    assert asked <= set(re.findall(r'id="([a-z-]+)"', INDEX))
