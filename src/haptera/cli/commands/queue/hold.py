"""`haptera hold`: start no new jobs on nodes until a person undrains them."""

import click

from haptera.cli.input.some_nodes import SomeNodes, desire_work, nodes_options, relieved
from haptera.cli.main import the_client
from haptera.cli.output.job_words import print_holders
from haptera.cli.output.printing import output_option
from haptera.cli.verb import answers, unwatched
from haptera.kinds.node import NodeWork
from haptera.rest.jobs import HolderView


@click.command()
@answers(HolderView, list[HolderView])
@unwatched("it runs once; `haptera queue` shows the state of each node")
@nodes_options
@click.option("-m", "--why", required=True, metavar="TEXT", help="The reason, shown to users.")
@click.option("--failed", is_flag=True, help="The nodes have failed: stop their jobs now.")
@output_option
@click.pass_context
def hold(ctx: click.Context, nodes: SomeNodes, why: str, failed: bool, output: str) -> None:
    r"""Start no new jobs on nodes; running jobs continue, and no pool removes a node.

    Many nodes are given by node-set or selector; either all of them are held, or none.

    \b
    Examples:
      haptera hold rack1n3 -m "somebody looks into it"
      haptera hold rack1n3 --failed -m "its memory is faulty"
      haptera hold 'rack1*' -m "the cooling is repaired"
    """
    wish = relieved(NodeWork.FAILED if failed else NodeWork.HELD, why)
    print_holders(desire_work(the_client(ctx), nodes, wish, why), nodes.words, output)
