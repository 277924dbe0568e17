"""The page on a first controller: it shows the files as they are, and these do what it says."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.keep_on import test_keep_on
from haptera.sdk import Cluster
from haptera.site import load_site

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorial/first-controller.md").read_text(encoding="utf-8")
TESTS = [one for name, one in vars(test_keep_on).items() if name.startswith("test_")]


@pytest.mark.parametrize("name", ["keep_on.py", "test_keep_on.py", "site.yaml"])
def test_the_page_shows_the_file_as_it_is(name: str) -> None:
    shown = re.findall(rf"^```\w+ {name}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

    assert shown == [(ROOT / "examples/keep_on" / name).read_text(encoding="utf-8")]


@pytest.mark.parametrize("test", TESTS)
def test_the_example_passes_its_own_tests(test: Callable[[], None]) -> None:
    test()


def test_the_site_file_names_the_controller_in_its_own_folder() -> None:
    path = ROOT / "examples/keep_on/site.yaml"
    (one,) = load_site(path, {"x": "9", "site": str(path.parent)}).controllers

    assert (path.parent / one.place.partition(":")[0]).with_suffix(".py").exists()


def test_what_the_page_says_of_the_cluster_is_there() -> None:
    named = re.findall(r"cluster\.(\w+)", PAGE)

    assert sorted({name for name in named if not hasattr(Cluster, name)} - {"settings"}) == []
