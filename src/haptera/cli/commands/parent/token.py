"""`haptera token`: tokens of the API."""

from pathlib import Path

import click

from haptera.cli.input import completing
from haptera.cli.lazy import Words
from haptera.cli.main import the_client
from haptera.cli.output.live.redrawing import keep_asking, only_tables, watch_option
from haptera.cli.output.printing import Format, names_option, print_data, print_names, say
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.client import Access, calls
from haptera.model.errors import Code, HapteraError, ParseError
from haptera.model.token_scope import Scope
from haptera.model.walltime import parse_duration_ms, utc_text
from haptera.rest.schemas import TOKEN_FOR_S_MAX, CertificateBody, TokenMade, Tokens, TokenView

_MS_PER_S = 1_000
_S_PER_DAY = 86_400


_scope_option = click.option(
    "--scope",
    type=click.Choice([one.value for one in Scope]),
    default=Scope.READ.value,
    show_default=True,
    help="What the token allows; each includes the one before, but report, which is apart.",
)
_for_option = click.option(
    "--for",
    "duration",
    default="30d",
    show_default=True,
    help="How long it is valid: 30m, 12h, 90d.",
)
_within_option = click.option(
    "--within",
    metavar="SELECTOR",
    shell_complete=completing.selectors,
    help="Limit it to these nodes, as rack1n*.",
)


@click.group(cls=Words)
def token() -> None:
    """Create, list and revoke tokens of the API."""


@token.command()
@answers(TokenMade)
@unwatched("it runs once; `haptera token list` shows valid tokens")
@click.argument("name")
@_scope_option
@_for_option
@_within_option
@click.option("--client-file", is_flag=True, help="Print a client file instead of the token.")
@names_option
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
    r"""Create a token for NAME and print it; it cannot be printed again.

    What NAME writes with it belongs to user:NAME.

    \b
    Examples:
      haptera token make grafana --for 365d
      haptera token make eve --scope write --within "rack1n*" --client-file > eve.json
    """
    client = the_client(ctx)
    for_s = _seconds(duration)
    made = client.ask(calls.make_token(name, Scope(scope), for_s=for_s, within=within))
    if client_file:
        told = client.access
        print_data(Access(told.url, made.text, authority=told.authority), Format.JSON)
    elif Format(output).for_people:
        say(made.text)
        say(f"{made.token.id}: {_sentence(made.token)}", err=True)
    else:
        print_names([made.token.id], made, output)


@token.command()
@answers(TokenView)
@unwatched("it runs once; `haptera token list` shows valid tokens")
@click.argument("name")
@click.argument("place", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@_scope_option
@_for_option
@_within_option
@click.option("--client-file", is_flag=True, help="Print a client file that uses it.")
@names_option
@click.pass_context
def certify(  # noqa: PLR0913 (an argument for each option)
    ctx: click.Context,
    name: str,
    place: Path,
    scope: str,
    duration: str,
    within: str | None,
    client_file: bool,
    output: str,
) -> None:
    r"""Create a key and a client certificate for NAME, to use over TLS instead of a token.

    Both are written to FILE. The key is created here and never leaves this machine.

    \b
    Examples:
      haptera token certify grafana grafana.pem --for 365d
      haptera token certify eve eve.pem --scope write --client-file > eve.json
    """
    from haptera.runtime.identity.pki import key_pem, make_request, new_key
    from haptera.runtime.identity.private import write_private

    client, key = the_client(ctx), new_key()
    for_s = _seconds(duration)
    body = CertificateBody(name, Scope(scope), for_s, make_request(key).decode(), within)
    made = client.ask(calls.certify(body))
    try:
        write_private(place, key_pem(key) + made.certificate.encode())
    except OSError as error:
        raise HapteraError(
            f"cannot be written: {error.strerror}",
            where=str(place),
            do=f"give another file, and revoke what was made: haptera token revoke {made.token.id}",
            code=Code.FILE_UNWRITABLE,
        ) from None
    if client_file:
        identity = str(place.absolute())
        found = Access(client.access.url, authority=made.authority, identity=identity)
        print_data(found, Format.JSON)
    elif not Format(output).for_people:
        print_names([made.token.id], made.token, output)
    say(f"{made.token.id}: {_sentence(made.token)}, with {place}", err=True)


@token.command("list")
@answers(list[TokenView])
@watch_option
@names_option
@click.pass_context
def list_(ctx: click.Context, watch: bool, output: str) -> None:
    r"""List valid tokens, without their secrets.

    \b
    Examples:
      haptera token list
      haptera token list --watch
      haptera token list -o json
    """
    client = the_client(ctx)
    if watch:
        only_tables(output)
        keep_asking(client, calls.tokens(), lambda answer: _table(answer, output))
        return
    answer = client.ask(calls.tokens())
    if Format(output).for_people:
        _table(answer, output)
    else:
        print_names([one.id for one in answer.tokens], answer.tokens, output)


def _table(answer: Tokens, output: str) -> None:
    rows = [
        (one.id, one.name, one.scope.value, one.within or "everywhere", utc_text(one.expires_s))
        for one in answer.tokens
    ]
    print_table(("ID", "NAME", "SCOPE", "WITHIN", "UNTIL"), rows, output)


@token.command()
@answers(list[TokenView])
@unwatched("it runs once; `haptera token list` shows valid tokens")
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=completing.tokens)
@names_option
@click.pass_context
def revoke(ctx: click.Context, ids: tuple[str, ...], output: str) -> None:
    r"""Revoke tokens, effective immediately.

    \b
    Examples:
      haptera token revoke 6f1d0c2b9a3e4f55
      haptera token revoke -o json 6f1d0c2b9a3e4f55 08a7c4d3e2f19b60
    """
    client = the_client(ctx)
    views = list[TokenView]()
    for one in ids:
        views.append(client.ask(calls.revoke_token(one)))
        if Format(output).for_people:
            say(f"{views[-1].id} of {views[-1].name} is revoked")
    if not Format(output).for_people:
        print_names([one.id for one in views], views, output)


def _seconds(duration: str) -> int:
    """How long a token is to hold.

    Raises:
        HapteraError: that is not a duration, or not one that a token may have.
    """
    for_s = parse_duration_ms(duration) // _MS_PER_S
    if not 1 <= for_s <= TOKEN_FOR_S_MAX:
        do = f"give it from 1s to {TOKEN_FOR_S_MAX // _S_PER_DAY}d"
        raise ParseError(f"a token cannot be valid for {duration}", do=do)
    return for_s


def _sentence(view: TokenView) -> str:
    where = "everywhere" if view.within is None else f"within {view.within}"
    return f"{view.name} may {view.scope.value} {where}, {_until(view)}"


def _until(view: TokenView) -> str:
    return f"until {utc_text(view.expires_s)}"
