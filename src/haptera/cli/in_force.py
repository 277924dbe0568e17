"""`haptera diff` and `export`: what is in force, beside a site's files and as one."""

from collections.abc import Iterable, Iterator

import click

from haptera.api.shapes import Difference, DifferenceView, Exported
from haptera.cli.client import UnreachableError
from haptera.cli.main import REFUSED, the_client
from haptera.cli.printing import Format, output_option, print_data, print_error
from haptera.cli.sites import files_argument, site_body
from haptera.cli.words import printable
from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError
from haptera.model.nodeset import fold, natural

# As of diff(1): 1 is said of files that differ, so that what goes wrong is 2.
DIFFERS = REFUSED
TROUBLE = 2
_COLOURS = {"-": "red", "+": "green"}


@click.command()
@files_argument
@output_option
@click.pass_context
def diff(ctx: click.Context, files: tuple[str, ...], output: str) -> int:
    r"""Show where a site's files and what is in force differ.

    FILE is a path, a folder of files, or - for standard input; several are one site. A line with
    - is in force, one with + is what the files say; who else a value belongs to stands behind it.

    Exit codes: 0 they are the same, 1 they differ, 2 a file is wrong.

    \b
    Examples:
      haptera diff site.yaml
      haptera export | haptera diff -
    """
    try:
        client = the_client(ctx)
        body = site_body(files, client.constants)
        answer = client.ask("POST", "/v1/diff", Difference, body=body)
    except UnreachableError:
        raise
    except HapteraError as error:
        print_error(error)
        return TROUBLE
    if Format(output) is not Format.TABLE:
        print_data(answer, output)
    elif answer.differences:
        click.echo(f"--- in force, revision {answer.revision}\n+++ {' '.join(files)}")
        for line in lines(answer.differences):
            click.secho(line, fg=_COLOURS[line[0]])
    return DIFFERS if answer.differences else 0


@click.command()
@click.option("--owner", metavar="OWNER", help="Only what this one has: site, user:NAME…")
@output_option
@click.pass_context
def export(ctx: click.Context, owner: str | None, output: str) -> None:
    r"""Write what is in force as a site file, which applies to nothing.

    The same state is written the same way each time, so that it can be kept in git.

    \b
    Examples:
      haptera export > site.yaml
      haptera export --owner site
    """
    query = None if owner is None else {"owner": owner}
    answer = the_client(ctx).get("/v1/export", Exported, query)
    if Format(output) is Format.TABLE:
        click.echo(answer.text, nl=False)
    else:
        print_data(answer, output)


def lines(differences: Iterable[DifferenceView]) -> Iterator[str]:
    """Each difference in one line or two, those that are alike on many nodes together."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in differences:
        entity = parse_entity(one.entity)
        at = "" if entity.node is None or entity.kind == "node" else f"{entity.name}@"
        alike.setdefault((f"{entity.kind}:{at}", _minus(one), _plus(one)), []).append(
            entity.node or entity.name
        )
    told = [(f"{title}{fold(nodes)}", *signs) for (title, *signs), nodes in alike.items()]
    for title, *signs in sorted(told, key=lambda one: (natural(one[0]), one[1:])):
        yield from (f"{sign[0]}{title}{sign[1:]}" for sign in signs if sign)


def _minus(one: DifferenceView) -> str:
    if one.before is None:
        return ""
    owner = "" if one.owner is None else f"  ({one.owner})"
    return f"-{_value(one.name, one.before)}{owner}"


def _plus(one: DifferenceView) -> str:
    return "" if one.after is None else f"+{_value(one.name, one.after)}"


def _value(name: str | None, value: str | int) -> str:
    return "" if name is None else f" {name}={printable(str(value))}"
