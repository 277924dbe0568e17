"""`haptera drain`: start no new jobs on nodes, and report when the last one has ended."""

import click

from haptera.cli.input.some_nodes import SomeNodes, desire_work, nodes_options, relieved
from haptera.cli.main import the_client
from haptera.cli.output.job_words import print_holders
from haptera.cli.output.printing import output_option
from haptera.cli.verb import answers, unwatched
from haptera.kinds.node import NodeWork
from haptera.model.walltime import parse_duration_ms
from haptera.rest.jobs import HolderView
from haptera.runtime import clock


@click.command()
@answers(HolderView, list[HolderView])
@unwatched("it runs once; `haptera queue` shows the state of each node")
@nodes_options
@click.option("--within", metavar="DURATION", help="Stop jobs that still run then: 30m, 2h.")
@click.option("-m", "--why", required=True, metavar="TEXT", help="The reason, shown to users.")
@output_option
@click.pass_context
def drain(ctx: click.Context, nodes: SomeNodes, within: str | None, why: str, output: str) -> None:
    r"""Start no new jobs on nodes; a node is drained when its running jobs have ended.

    With --within, jobs that still run then are stopped with SIGTERM, and SIGKILL 10 s later.
    They are queued again if their --retry allows it. `haptera undrain` ends a drain.

    Many nodes are given by node-set or selector; either all of them are drained, or none.

    \b
    Examples:
      haptera drain rack1n3 -m "new disk"
      haptera drain rack1n3 --within 2h -m "new disk"
      haptera drain rack1n[1-16] rack2n7 -m "new switch"
      haptera drain 'node:* and condition=stuck' --state idle -m "somebody looks into it"
    """
    within_ms = None if within is None else parse_duration_ms(within)
    until = None if within_ms is None else int(clock.wall_s()) + within_ms // 1_000
    wish = relieved(NodeWork.DRAINING, why, until)
    print_holders(desire_work(the_client(ctx), nodes, wish, why), nodes.words, output)
