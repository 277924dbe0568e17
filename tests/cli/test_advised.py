"""Commands that messages advise: each can be typed as it stands, with its own words put in."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import haptera
from haptera.cli.main import cli
from tests.cli import playing
from tests.cli.test_help import calls, parsed

SOURCES = Path(haptera.__file__).parent
VERBS = "|".join(sorted(cli.list_commands(click.Context(cli)), key=len, reverse=True))
QUOTED = re.compile(rf"`(haptera (?:{VERBS})\b[^`]*)`")
# To the end of the sentence, or of its part; a call's own brackets and quotes are within it.
_PART = r"""'[^'\n]*'|"[^"\n]*"|[^;,:()`\n'"]|[:,](?=\S)"""
PLAIN = re.compile(rf"\bhaptera (?:{VERBS})(?![\w:=])(?:{_PART})*")
# What stands for a value that is put in: a name, a number, or all words of another command.
VALUE, WORDS = "\0", "\1"
FILLED = ("n1", "1", "site.yaml")
LACKS = (click.MissingParameter, click.exceptions.NoArgsIsHelpError)
# Its own name, as programs have it before what they say.
PREFIX = re.compile(r"haptera \w+: ")


def advised(text: str) -> Iterator[str]:
    """The commands in a message; a verb alone in backticks names it, and is none."""
    if PREFIX.match(text) or "Examples:" in text:  # those of its help are parsed, too
        return
    for found in QUOTED.findall(text):
        if found.removeprefix("haptera ") not in NAMED:
            yield found
    for one in PLAIN.finditer(QUOTED.sub("", text)):
        yield one[0].strip(" .\\")


def names(group: click.Group, before: str = "") -> Iterator[str]:
    for name in group.list_commands(click.Context(group)):
        yield before + name
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from names(command, f"{before}{name} ")


NAMED = frozenset(names(cli))


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """All texts of a source with their lines; its docstrings have examples, which are parsed."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            skipped.update(one for one in ast.walk(node) if one is not node)
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, re.sub(r"(?<=\w)\{\w+\}", "", node.value)
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(map(shown, node.values))


def shown(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    joined = isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Call)
    return WORDS if joined and "join" in ast.unparse(part) else VALUE


def wrong(command: str) -> str | None:
    """What is wrong with a command, whatever is put in; None: it can be typed."""
    said = ""
    for one in FILLED:
        line = re.sub(r"\$[A-Z_]+", "", command.replace(VALUE, one).replace("…", one))
        try:
            for call in calls(line.replace(WORDS, "")):
                parsed(call)
        except click.exceptions.Exit:
            return None  # its help
        except (click.UsageError, ValueError) as error:
            said = str(error)
            if WORDS in command and isinstance(error, LACKS):
                return None
        else:
            return None
    return f"{command.replace(VALUE, '…')}: {said}"


@pytest.fixture(autouse=True)
def _files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "FILE").touch()
    monkeypatch.chdir(tmp_path)


def test_each_command_in_a_message_can_be_typed() -> None:
    found = {
        f"{path.relative_to(SOURCES)}:{line}: {command}": wrong(command)
        for path in SOURCES.rglob("*.py")
        for line, text in messages(path)
        for command in advised(text)
    }
    assert len(found) > 80
    assert {where: said for where, said in found.items() if said} == {}


@pytest.mark.parametrize("path", sorted(playing.FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_each_command_that_an_answer_has_can_be_typed(path: Path) -> None:
    answered = [
        line
        for story in playing.read(path)[1]
        for step in story.steps
        for line in step.output.splitlines()
    ]
    assert [said for line in answered for one in advised(line) if (said := wrong(one))] == []


@pytest.mark.parametrize(
    "text",
    ["see haptera statsu why", "haptera thaw", "the end, or haptera thaw", "`haptera roll rm -x`",
     "haptera why \0 tells how it is", "haptera serve --site", "haptera power \0, it hangs"],
)  # fmt: skip
def test_a_command_that_cannot_be_typed_is_found(text: str) -> None:
    assert "statsu" in text or [wrong(one) for one in advised(text)] != [None]
