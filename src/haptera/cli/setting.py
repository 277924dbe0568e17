"""`haptera set` and `unset`: one entity's desired values, in one's own name."""

import click

from haptera.cli import completing
from haptera.cli.main import the_client
from haptera.cli.printing import Format, entities_option, print_entities
from haptera.cli.words import details, sentence
from haptera.client import Call, calls
from haptera.model.errors import HapteraError
from haptera.model.views import EntityView

_take_option = click.option("--take", is_flag=True, help="Also what belongs to another owner.")
_why_option = click.option("-m", "--why", help="Why, for whoever reads the history.")


@click.command("set")
@click.argument("entity", shell_complete=completing.entities)
@click.argument(
    "values",
    metavar="NAME=VALUE...",
    nargs=-1,
    required=True,
    shell_complete=completing.values,
)
@_take_option
@_why_option
@entities_option
@click.pass_context
def set_values(
    ctx: click.Context,
    entity: str,
    values: tuple[str, ...],
    take: bool,
    why: str | None,
    output: str,
) -> None:
    r"""Desire values of ENTITY; they belong to you, and no site file changes them.

    A value that belongs to another owner (the site, a controller) is left as it is, unless you
    --take it.

    \b
    Examples:
      haptera set node:n1 power=off -m "new fans"
      haptera set service:web@n1 port=8081 run=running --take
    """
    _write(ctx, calls.desire(entity, dict(map(_pair, values)), take=take, why=why), output)


@click.command("unset")
@click.argument("entity", shell_complete=completing.entities)
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completing.variables
)
@_take_option
@_why_option
@entities_option
@click.pass_context
def unset_values(
    ctx: click.Context,
    entity: str,
    names: tuple[str, ...],
    take: bool,
    why: str | None,
    output: str,
) -> None:
    r"""Desire nothing any more of these variables of ENTITY.

    What a site file says of them holds again once it is applied.

    \b
    Examples:
      haptera unset node:n1 power
      haptera unset service:web@n1 port run -m "as all others"
    """
    _write(ctx, calls.desire(entity, dict.fromkeys(names), take=take, why=why), output)


def _write(ctx: click.Context, call: Call[EntityView], output: str) -> None:
    view = the_client(ctx).ask(call)
    if Format(output) is not Format.TABLE:
        print_entities([view.entity], view, output)
        return
    click.echo(sentence(view))
    for line in details(view):
        click.echo(f"  {line}")


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise HapteraError(f"{text!r} is no value", do="write NAME=VALUE")
    return name, value
