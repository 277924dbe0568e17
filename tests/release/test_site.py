"""The documentation as a site: it builds without a warning, and each public name is in it."""

import re
import subprocess
import sys

import pytest

import haptera.sdk
from tests.release.rig import ROOT
from tools.site.__main__ import MADE, NAMED_FENCE, python_reference, routes


@pytest.mark.long
def test_the_site_builds_without_a_warning_and_has_all_pages() -> None:
    built = [sys.executable, "-m", "tools.site"]
    done = subprocess.run(built, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = (one.relative_to(ROOT) for one in ROOT.glob("docs/*/*.md"))
    # Of a folder, its README is the first page.
    pages = {one.with_stem(one.stem.replace("README", "index")) for one in found}
    pages = {one.with_suffix(".html") for one in pages}
    assert {one for one in pages if not (MADE / "site" / one).exists()} == set()
    first = (MADE / "site/index.html").read_text("utf-8")
    assert "docs/reference/python.html" in first


def test_each_route_of_the_document_has_its_heading() -> None:
    headings = re.findall(r"^## ([A-Z]+ /.*)$", "\n".join(routes()), re.MULTILINE)
    assert len(headings) == len(set(headings)) > 60
    assert "POST /v1/entities/{entity}/invitation" in headings


def test_each_public_name_of_the_sdk_has_its_heading() -> None:
    text = "\n".join(python_reference())
    assert [name for name in haptera.sdk.__all__ if f"\n### {name}\n" not in text] == []
    assert "\n### make_token\n" in text


def test_the_names_of_fences_are_for_tests_alone() -> None:
    text = "```python malformed\nx = 1\n```\n```sh\nls -l x\n```\n"
    assert NAMED_FENCE.sub(r"\1", text) == text.replace(" malformed", "")
