"""`haptera undrain`: start jobs on nodes again."""

import click

from haptera.cli.input.some_nodes import OPENED, SomeNodes, desire_work, nodes_options
from haptera.cli.input.terms import why_option
from haptera.cli.main import the_client
from haptera.cli.output.job_words import print_holders
from haptera.cli.output.printing import output_option
from haptera.cli.verb import answers, unwatched
from haptera.rest.jobs import HolderView


@click.command()
@answers(HolderView, list[HolderView])
@unwatched("it runs once; `haptera queue` shows the state of each node")
@nodes_options
@why_option
@output_option
@click.pass_context
def undrain(ctx: click.Context, nodes: SomeNodes, why: str | None, output: str) -> None:
    r"""Start jobs on nodes again: end a drain or hold. Running jobs are not affected.

    Many nodes are given by node-set or selector; either all of them are opened, or none.

    \b
    Examples:
      haptera undrain rack1n3
      haptera undrain rack1n[1-16] -o json
      haptera undrain '*' --state drained --who eve
    """
    print_holders(desire_work(the_client(ctx), nodes, OPENED, why), nodes.words, output)
