"""`haptera token`: tokens of the API, made, listed and taken back."""

import click

from haptera.api.shapes import TokenView
from haptera.cli.main import the_client
from haptera.cli.printing import Format, output_option, print_data, print_table
from haptera.client import Access, calls
from haptera.model.walltime import parse_duration_ms, utc_text
from haptera.runtime.tokens import Scope

_MS_PER_S = 1_000


@click.group()
def token() -> None:
    """Make, list and take back tokens of the API."""


@token.command()
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice([one.value for one in Scope]),
    default=Scope.READ.value,
    show_default=True,
    help="What it allows; each includes the one before.",
)
@click.option("--for", "duration", default="30d", show_default=True, help="30m, 12h, 90d.")
@click.option("--within", metavar="SELECTOR", help="Only what this names, as rack1n*.")
@click.option("--client-file", is_flag=True, help="Write a client file instead of the token.")
@output_option
@click.pass_context
def make(
    ctx: click.Context,
    name: str,
    scope: str,
    duration: str,
    within: str | None,
    client_file: bool,
    output: str,
) -> None:
    r"""Make a token for NAME, and write it: it is shown this once.

    What NAME writes with it belongs to user:NAME.

    \b
    Examples:
      haptera token make grafana --for 365d
      haptera token make eve --scope write --within "rack1n*" --client-file > eve.json
    """
    client = the_client(ctx)
    for_s = parse_duration_ms(duration) // _MS_PER_S
    made = client.ask(calls.make_token(name, Scope(scope), for_s=for_s, within=within))
    if client_file:
        print_data(Access(client.access.url, made.text), Format.JSON)
    elif Format(output) is Format.TABLE:
        click.echo(made.text)
        click.echo(f"{made.token.id}: {_sentence(made.token)}", err=True)
    else:
        print_data(made, output)


@token.command("list")
@output_option
@click.pass_context
def list_(ctx: click.Context, output: str) -> None:
    r"""Show all tokens that hold, without their secrets.

    \b
    Examples:
      haptera token list
      haptera token list -o json
    """
    answer = the_client(ctx).ask(calls.tokens())
    if Format(output) is not Format.TABLE:
        print_data(answer.tokens, output)
        return
    rows = [
        (one.id, one.name, one.scope.value, one.within or "everywhere", _until(one))
        for one in answer.tokens
    ]
    print_table(rows)


@token.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.pass_context
def revoke(ctx: click.Context, ids: tuple[str, ...]) -> None:
    r"""Take tokens back: whoever holds one is refused from now on.

    \b
    Examples:
      haptera token revoke 6f1d0c2b9a3e4f55
    """
    client = the_client(ctx)
    for one in ids:
        view = client.ask(calls.revoke_token(one))
        click.echo(f"{view.id} of {view.name} is revoked")


def _sentence(view: TokenView) -> str:
    where = "everywhere" if view.within is None else f"within {view.within}"
    return f"{view.name} may {view.scope.value} {where}, {_until(view)}"


def _until(view: TokenView) -> str:
    return f"until {utc_text(view.expires_s)}"
