"""What pages link to or name is there: pages, headings, files and tests."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import FENCE, PAGES, ROOT, name_of

LINK = re.compile(r"\]\(([^)\s]+)\)")
# What stands in code is a path from the checkout's top, or from below src.
PATH = re.compile(r"`((?:docs|tests|examples|benchmarks|src|tools|news)/[\w./-]*)`")
NAMED = re.compile(r"`(test_\w+)`")
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
}
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
ELSEWHERE = ("https://", "http://", "mailto:")


def text_of(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub and its like make them."""
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in HEADING.findall(text_of(page))
    }


def broken(page: Path) -> list[str]:
    found = []
    for link in LINK.findall(text_of(page)):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if link.startswith(ELSEWHERE):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    assert [name for name in PATH.findall(text_of(page)) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tests_that_a_page_names_are_there(page: Path) -> None:
    assert {*NAMED.findall(text_of(page))} - TESTS == set()


def test_the_index_names_all_pages() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    read_on = [name_of(page) for page in PAGES if "decisions" not in page.parts]
    assert [name for name in read_on if name not in index and not name.endswith("README.md")] == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`: three\n[a](page.md#one-two-three) [b](#four) [c](gone.md)\n")
    assert broken(page) == ["#four", "gone.md"]
