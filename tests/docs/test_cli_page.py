"""The page on the command line: its verbs and exit codes are those of the code.

Make the table of verbs anew: python -m tests.docs.test_cli_page
"""

import re
from pathlib import Path

import click

from haptera.cli import job, main
from haptera.cli.main import cli

FILE = Path(__file__).resolve().parents[2] / "docs/reference/cli.md"
VERBS = re.compile(r"^(?:\| `[a-z ]+` \| [A-Z].*\n)+", re.MULTILINE)
CODE = re.compile(r"^\| ([0-9]+) \|", re.MULTILINE)


def verbs(group=cli, path=""):
    """A row for each verb, with the first sentence of its help."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs(command, f"{path}{name} ")
        else:
            first = " ".join(command.help.partition("\n\n")[0].split())
            yield f"| `{path}{name}` | {first.rstrip('.').replace('|', chr(92) + '|')} |\n"


def test_all_verbs_are_told():
    text = FILE.read_text(encoding="utf-8")
    assert VERBS.search(text)[0] == "".join(verbs()), "python -m tests.docs.test_cli_page"


def test_the_exit_codes_are_those_of_the_code():
    codes = [main.OK, main.REFUSED, main.USAGE, main.UNREACHABLE, main.NOT_CONVERGED]
    told = [int(one) for one in CODE.findall(FILE.read_text(encoding="utf-8"))]
    assert told == [*codes, job.CLOSED, main.INTERRUPTED]


if __name__ == "__main__":
    page = FILE.read_text(encoding="utf-8")
    FILE.write_text(VERBS.sub(lambda _: "".join(verbs()), page, count=1), encoding="utf-8")
