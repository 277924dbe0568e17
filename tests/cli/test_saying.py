"""All that the command line writes goes through one function, and steers no terminal."""

import ast
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import haptera.cli
from haptera.cli.output.printing import (
    Coloured,
    print_data,
    print_document,
    print_error,
    print_names,
    say,
)
from haptera.cli.output.tables import print_sentence, print_table
from haptera.model.errors import HapteraError

ROOT = Path(haptera.cli.__file__).parent
# How something else than the one function could write.
WAYS = {
    *("click.echo", "click.secho", "click.style", "click.echo_via_pager", "click.progressbar"),
    *("click.prompt", "click.confirm", "click.pause", "click.edit", "print", "pprint", "Console"),
    *("sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer", "sys.stderr.buffer"),
    *("click.utils", "click.termui", "sys.__stdout__", "sys.__stderr__", "buffer.write"),
}
# Who may: the function itself, questions, and the output of a command, which is passed on as it is.
ALLOWED = {
    "output/printing.py": {"click.echo", "click.style"},
    "input/confirming.py": {"click.confirm", "click.prompt"},
    "commands/parent/secret.py": {"click.prompt"},
    "commands/setup/parent.py": {"click.prompt"},
    "commands/node/exec_.py": {"buffer.write"},
}
HOSTILE = "job\x1b[2J\x1b]0;owned\a\u202egnp.exe\x9b1m\x7f"


def written_by(path):
    """The names in a file by which it could write."""
    tree = ast.parse(path.read_text("utf-8"))
    named = {
        ast.unparse(one) for one in ast.walk(tree) if isinstance(one, ast.Attribute | ast.Name)
    }
    named |= {"buffer.write" for one in named if one.endswith("buffer.write")}
    imported = {
        f"{one.module}.{name.name}"
        for one in ast.walk(tree)
        if isinstance(one, ast.ImportFrom)
        for name in one.names
    }
    return (named | imported) & WAYS


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.name))
def test_nothing_is_written_but_by_the_one_function(path):
    allowed = ALLOWED.get(str(path.relative_to(ROOT)), set())
    assert written_by(path) <= allowed


@pytest.mark.parametrize(
    "write",
    [
        lambda: say(HOSTILE),
        lambda: say("state ", Coloured(HOSTILE, "red"), fg="green"),
        lambda: print_sentence(HOSTILE, "table"),
        lambda: print_table(["JOB", "STATE", "WHY"], [[HOSTILE] * 3], "table", ["red"]),
        lambda: print_error(HapteraError(HOSTILE, where=HOSTILE, do=HOSTILE)),
        lambda: print_names([HOSTILE], {}, "name"),
        lambda: print_data({"why": HOSTILE}, "json"),
        lambda: print_data({"why": HOSTILE}, "yaml"),
        lambda: print_document(HOSTILE),
    ],
)
def test_what_others_say_is_seen_and_steers_nothing(write):
    told = CliRunner().invoke(click.command()(write), color=True)
    assert told.exception is None
    text = told.output
    for colour in ("\x1b[31m", "\x1b[32m", "\x1b[0m"):
        text = text.replace(colour, "")
    assert text.replace("\n", "").isprintable()
    assert "owned" in text
    assert "\\x1b" in text or "\\u001b" in text or "\\e" in text


def test_a_row_has_its_columns_where_they_are_seen():
    rows = [["a", HOSTILE, "x"], ["a\nb", "y", "z"]]
    told = CliRunner().invoke(click.command()(lambda: print_table(["A", "B", "C"], rows, "wide")))
    places = {line.rindex(last) for line, last in zip(told.output.splitlines(), "Cxz", strict=True)}
    assert len(places) == 1
