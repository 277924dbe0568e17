"""`haptera evict`: the session of a node ended."""

import click

from haptera.cli.input.naming import node_argument
from haptera.cli.input.terms import why_option
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, output_option, print_data, say
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.rest.schemas import Evicted


@click.command()
@answers(Evicted)
@unwatched("it runs once")
@node_argument
@why_option
@output_option
@click.pass_context
def evict(ctx: click.Context, node: str, why: str | None, output: str) -> None:
    r"""End the session of NODE, because its machine is no longer trusted.

    Its datagrams and certificate are refused, and its enrolment tokens are void. The node stays
    declared; it gets a new session when its parent boots it again. A machine that joined by a token
    of its own can do so again: revoke that token, too (`haptera token list`).

    \b
    Examples:
      haptera evict rack1n3 -m "it was stolen"
      haptera evict rack1n3 -o json
    """
    told = the_client(ctx).ask(calls.evict(node, why=why))
    if Format(output).for_people:
        say(f"{told.node} is evicted; boot it again to re-admit it")
    else:
        print_data(told, output)
