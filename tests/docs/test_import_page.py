"""The page on imports: its commands are typed, and answer what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from haptera.cli.importing import import_from
from haptera.config.imports.found import GROUPS_MAX, NODES_MAX
from haptera.config.imports.remarks import Sort
from haptera.config.imports.source import IMPORT_BYTES_MAX
from tests.cli.rig import LAB_ENDS_S_MAX, client_of, environment, served

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/import.md").read_text("utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inventory.json").write_text(block("json inventory.json"))
    return tmp_path


def block(title: str) -> str:
    (found,) = re.findall(rf"^```{re.escape(title)}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def typed(text: str, folder: Path) -> str:
    """The block as a terminal would have it: each line with a `$`, and what it answers."""
    shown = []
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=folder,
            env={**environment(client_of(folder)), "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LAB_ENDS_S_MAX,
        )
        shown.append(f"$ {line}\n{done.stdout}")
    return "".join(shown)


def test_an_import_answers_what_the_page_says(folder: Path) -> None:
    assert typed(block("console"), folder) == block("console")


@pytest.mark.slow
@pytest.mark.net
def test_a_parent_that_is_given_the_site_does_nothing(folder: Path) -> None:
    typed(block("console"), folder)

    with served(folder, "--site", folder / "site.yaml"):
        assert typed(block("console served"), folder) == block("console served")


def test_the_tables_have_all_tools_and_sorts() -> None:
    firsts = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)

    assert firsts == [*import_from.commands, *Sort]


def test_the_limits_are_those_of_the_code() -> None:
    (line,) = re.findall(
        r"A file has (\d+) MiB at most, an import ([\d,]+) nodes and ([\d,]+) groups\.", PAGE
    )

    assert line == (str(IMPORT_BYTES_MAX // 2**20), f"{NODES_MAX:,}", f"{GROUPS_MAX:,}")
