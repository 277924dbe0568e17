"""The controllers of a site file: what is read, and what is wrong with it."""

import pytest

from haptera.model.errors import InputError
from haptera.rest.schemas import SiteFile
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.site import parse_site
from haptera.site.model.controllers import SETTINGS_BYTES_MAX

GOOD = """\
cluster: c
controllers:
  keep-on:
    place: keep_on:controller
    settings: {nodes: "n[1-5]", count: 3, quiet: true}
  plain: {place: installed.package:controller}
"""


def test_a_controller_has_a_place_settings_and_the_files_folder():
    site = parse_site([SiteFile("site.yaml", GOOD)], {"site": "/etc/haptera"})
    settings = {"nodes": "n[1-5]", "count": 3, "quiet": True}
    assert site.controllers == (
        ControllerPlace("keep-on", "keep_on:controller", "/etc/haptera", settings),
        ControllerPlace("plain", "installed.package:controller", "/etc/haptera", {}),
    )


@pytest.mark.parametrize(
    ("given", "what", "where"),
    [
        ("keep-on: {place: keep_on}", "'keep_on' is not a place", "3:20"),
        ("keep-on: {}", "its place is not given", "3:12"),
        (
            "keep-on: {place: ../keep:controller}",
            "'../keep:controller' is not a place",
            "3:20",
        ),
        ("keep-on: keep_on:controller", "a mapping is expected here", "3:12"),
        ("keep-on: {place: a:b, setings: {}}", "unknown key setings", "3:25"),
        ("keep-on: {place: a:b, settings: 3}", "settings are a mapping", "3:12"),
        ("service: {place: a:b}", "service is a module", "3:3"),
        ("a b: {place: a:b}", "'a b' is not a name", "3:3"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(given, what, where):
    with pytest.raises(InputError) as caught:
        parse_site([SiteFile("site.yaml", f"cluster: c\ncontrollers:\n  {given}\n")], {})
    assert [(one.what, one.where) for one in caught.value.errors] == [(what, f"site.yaml:{where}")]
    assert caught.value.do


def test_settings_are_bounded():
    text = GOOD.replace("count: 3", f"text: {'x' * SETTINGS_BYTES_MAX}")
    with pytest.raises(InputError, match="settings take 16384 bytes at most"):
        parse_site([SiteFile("site.yaml", text)], {})
