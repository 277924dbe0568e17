"""The page on the command line: its verbs and exit codes are those of the code.

Make its tables of verbs anew: python -m tests.docs.test_cli_page
"""

import re
from pathlib import Path

import click

from haptera.cli import main
from haptera.cli.commands.node import job
from haptera.cli.main import cli
from haptera.cli.verb import unwatched_of
from tests.cli.test_help import EVERY

FILE = Path(__file__).resolve().parents[2] / "docs/reference/cli.md"
VERBS = re.compile(r"^(?:\| `[a-z ]+` \| [A-Z].*\n)+", re.MULTILINE)
FORMS = re.compile(r"^(?:\| `[a-z ]+` \| .* \| (?:yes|no: .*) \|\n)+", re.MULTILINE)
CODE = re.compile(r"^\| ([0-9]+) \|", re.MULTILINE)


def verbs(group=cli, path=""):
    """A row for each verb, with the first sentence of its help."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs(command, f"{path}{name} ")
        if not isinstance(command, click.Group) or command.invoke_without_command:
            first = " ".join(command.help.partition("\n\n")[0].split())
            yield f"| `{path}{name}` | {first.rstrip('.').replace('|', chr(92) + '|')} |\n"


def forms():
    """A row for each verb, with what -o takes, and whether --watch is there, or why it is not."""
    for path, command in EVERY.items():
        verb = " ".join(path)
        options = {one.name: one for one in command.params}
        written = ", ".join(options["output"].type.choices) if "output" in options else "-"
        watched = "yes" if "watch" in options else f"no: {unwatched_of(command)}"
        yield f"| `{verb}` | {written} | {watched} |\n"


def test_all_verbs_are_told():
    text = FILE.read_text(encoding="utf-8")
    assert VERBS.search(text)[0] == "".join(verbs()), "python -m tests.docs.test_cli_page"


def test_what_each_verb_writes_and_watches_is_told():
    text = FILE.read_text(encoding="utf-8")
    assert FORMS.search(text)[0] == "".join(forms()), "python -m tests.docs.test_cli_page"


def test_a_verb_is_watched_or_says_why_not():
    for path, one in EVERY.items():
        watched = "watch" in {option.name for option in one.params}
        assert watched == (unwatched_of(one) is None), path


def test_the_exit_codes_are_those_of_the_code():
    codes = [main.OK, main.REFUSED, main.USAGE, main.UNREACHABLE]
    codes += [main.NOT_CONVERGED, main.NOTHING_DESIRED]
    told = [int(one) for one in CODE.findall(FILE.read_text(encoding="utf-8"))]
    assert told == [*codes, job.CLOSED, main.INTERRUPTED]


if __name__ == "__main__":
    page = FILE.read_text(encoding="utf-8")
    page = VERBS.sub(lambda _: "".join(verbs()), page, count=1)
    FILE.write_text(FORMS.sub(lambda _: "".join(forms()), page, count=1), encoding="utf-8")
