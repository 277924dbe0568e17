"""What pages have people type: the sessions of each, and the commands that its text names."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.transcripts.playing import commands

ROOT = Path(__file__).resolve().parents[2]
# All but the changelog, which tells of what was.
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"})
# A fence's language, its name, what is in it.
FENCE = re.compile(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = (
    "haptera",
    "make",
    "apt",
    "curl",
    "git",
    "pip",
    "pytest",
    "python",
    "python3",
    ".venv/bin/",
)
BEGINS = "|".join(f"{re.escape(one)}{'' if one.endswith('/') else ' '}" for one in PROGRAMS)
INLINE = re.compile(rf"`((?:{BEGINS})[^`\n]+)`")


class Quoted(NamedTuple):
    """A command of a page, and what the page says it writes: nothing where it says nothing."""

    command: str
    output: str


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def sessions(page: Path) -> dict[str, list[Quoted]]:
    """The commands in fences of `sh` and `console`, by page and the fence's name, in order.

    What stands in fences of one name is one session, typed from top to bottom.
    """
    found: dict[str, list[Quoted]] = {}
    for language, name, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in ("sh", "console"):
            typed = plain(text) if language == "sh" else prompted(text)
            found.setdefault(f"{name_of(page)} {name}".strip(), []).extend(typed)
    return found


def prompted(text: str) -> Iterator[Quoted]:
    for one in commands(text):
        yield Quoted(one.command, one.output)


def plain(text: str) -> Iterator[Quoted]:
    """Commands without output; one is as many lines as a shell wants of it."""
    command = ""
    for line in text.splitlines(keepends=True):
        command += line
        if not line.endswith("\\\n") and whole(command):
            yield Quoted(command.rstrip("\n"), "")
            command = ""
    assert command == "", f"it has no end: {command}"


def whole(command: str) -> bool:
    return subprocess.run(["bash", "-n", "-c", command], stderr=subprocess.DEVNULL).returncode == 0


def files(page: str) -> dict[str, str]:
    """The files that a page shows: what stands in fences which are named as such."""
    found = FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    return {name: text for _, name, text in found if re.fullmatch(r"[\w/-]+\.\w+", name)}


def in_sentences(page: Path) -> list[str]:
    """The commands that stand in the page's sentences and tables."""
    return INLINE.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
