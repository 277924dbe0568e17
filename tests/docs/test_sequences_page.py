"""The page of sequences, and the checklist of messages between parents: what they name exists."""

import re
from pathlib import Path

from tests.docs.pages import FENCE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/explain/sequences.md").read_text(encoding="utf-8")
DIAGRAMS = "".join(text for _, _, text in FENCE.findall(PAGE))
SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "src/haptera").rglob("*.py")
)
METHODS = re.compile(r"^class (\w+)[(:]|^    (?:async )?def (\w+)", re.MULTILINE)


def defined() -> set[tuple[str, str]]:
    """All methods, by their class."""
    found, owner = set(), ""
    for name, method in METHODS.findall(SOURCES):
        owner = name or owner
        found.add((owner, method))
    return found


def test_each_class_in_a_diagram_exists() -> None:
    named = set(re.findall(r"\b(?:event|effect) (\w+)|\b([A-Z][a-z]+(?:[A-Z][a-z]+)+)", DIAGRAMS))
    names = {event or name for event, name in named}
    assert {"Proposed", "RoomAsk", "SubtreeReport"} <= names
    assert names - {name for name, _ in defined()} == set()


def test_each_function_in_a_diagram_exists() -> None:
    named = set(re.findall(r"(\w+)\.(\w+)\(\)", DIAGRAMS))
    assert ("RoomAsks", "answer") in named
    assert named - defined() == set()


def test_each_field_of_a_report_is_in_its_diagram() -> None:
    body = re.search(r"class SubtreeReport\(.*?\n\n\n", SOURCES, re.DOTALL)
    assert body is not None
    fields = re.findall(r"^    (\w+): ", body[0], re.MULTILINE)
    report = DIAGRAMS.partition("SubtreeReport")[2]
    assert [field for field in fields if not re.search(rf"\b{field}\b", report)] == []


def test_the_files_and_functions_in_the_checklist_of_messages_exist() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    checklist = contributing.partition("## Checklist: adding a message between parents\n")[2]
    files = set(re.findall(r"`((?:core|daemon|model|rest|testing)/[\w/]+\.py)`", checklist))
    functions = set(re.findall(r"`([A-Z]\w+)\.(\w+)`", checklist))
    assert len(files) > 5
    assert len(functions) > 5
    assert [one for one in files if not (ROOT / "src/haptera" / one).exists()] == []
    assert functions - defined() == set()
