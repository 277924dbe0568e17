"""`haptera exec`: a command on a node, or in a system that runs there."""

import sys
from contextlib import closing
from typing import Final

import click

from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.main import the_client
from haptera.cli.output.printing import print_error, say
from haptera.cli.verb import unwatched
from haptera.client import Client, calls
from haptera.client.call import ApiCall
from haptera.model.errors import Code, HapteraError, LimitError
from haptera.model.walltime import parse_duration_ms
from haptera.rest.exec import STDIN_BYTES_MAX, WITHIN_S_MAX, ExecView

# As ssh has it: what went wrong is not the command's.
FAILED: Final = 255
_MS_PER_S: Final = 1_000


@click.command("exec", context_settings={"allow_interspersed_args": False})
@unwatched("it runs once")
@click.argument("where", metavar="NODE[/SYSTEM]", shell_complete=completing.entities)
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-i", "--stdin", "given", is_flag=True, help="Send standard input, up to 512 KiB.")
@click.option(
    "--within",
    "duration",
    default="10m",
    show_default=True,
    help="End it after so long: 30s, 2h; at most 1d.",
)
@click.pass_context
def execute(
    ctx: click.Context, where: str, words: tuple[str, ...], *, given: bool, duration: str
) -> int:
    r"""Run a command on a node, or in a system that runs on it.

    COMMAND is run as it is: no shell is in between. Options are put before NODE. Ctrl-C ends it
    there. The exit status is the command's, 128 and the number of the signal that ended it, 127 if
    there is no such command, 124 at its time limit, and 255 if haptera could not run it or lost it.
    This needs a token of scope exec. The audit records who ran what where.

    \b
    Examples:
      haptera exec rack1n1 -- uptime
      haptera exec rack1n1/login -- cat /etc/os-release
      haptera exec -i rack1n1 -- sh -c "cat > /etc/motd" < motd
    """
    words = _command(ctx, words)
    try:
        client = the_client(ctx)
        stdin = _read_input() if given else None
        within_s = _seconds(duration)
        return _run(client, calls.execute(_entity(where), words, stdin=stdin, within_s=within_s))
    except HapteraError as error:
        print_error(error)
        return FAILED


def _run(client: Client, call: ApiCall[ExecView]) -> int:
    """Write what it writes, where it writes it; its exit status.

    Raises:
        HapteraError: it was not run, or nothing more is known of it.
    """
    with closing(client.lines(call)) as lines:
        for told in lines:
            for data, to in ((told.stdout, sys.stdout), (told.stderr, sys.stderr)):
                if data:
                    to.buffer.write(data)
                    to.flush()
            if told.lost is not None:
                raise HapteraError(told.lost, code=Code.UNREACHABLE)
            if told.status is not None:
                if told.why is not None:
                    say(f"haptera exec: {told.why}", err=True)
                return told.status
    what = "the parent ended the answer before the command ended"
    raise HapteraError(what, where=client.access.url, code=Code.UNREACHABLE)


def _command(ctx: click.Context, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words after NODE, without the -- that may begin them; all options are before NODE.

    Raises:
        click.UsageError: there is no command, or an option stands where it begins.
    """
    words = words[words[0] == "--" :]
    if not words:
        raise click.UsageError("Missing argument 'COMMAND...'.", ctx)
    if words[0].startswith("-"):
        raise click.UsageError(f"put {words[0]} before NODE: what follows NODE is COMMAND", ctx)
    return words


def _entity(where: str) -> str:
    """The entity that is meant.

    >>> _entity("n1"), _entity("n1/login"), _entity("system:login@n1")
    ('node:n1', 'system:login@n1', 'system:login@n1')
    """
    node, slash, system = where.removeprefix("node:").partition("/")
    return f"system:{system}@{node}" if slash else entity_named(where)


def _seconds(duration: str) -> int:
    within_s = parse_duration_ms(duration) // _MS_PER_S
    if not 1 <= within_s <= WITHIN_S_MAX:
        raise LimitError(f"a command cannot run for {duration}", do="give it from 1s to 1d")
    return within_s


def _read_input() -> bytes:
    content = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1)
    if len(content) > STDIN_BYTES_MAX:
        raise LimitError(
            f"standard input has more than {STDIN_BYTES_MAX} bytes",
            do="put what is long where the node can fetch it",
        )
    return content
