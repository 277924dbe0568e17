"""`haptera power`: machines switched off, on, or off and on again, as people mean it."""

from collections.abc import Mapping

import click

from haptera.cli.commands.change.set import is_one, write
from haptera.cli.commands.inspect.wait import wait_for, within_option
from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.input.terms import WriteTerms, terms_options
from haptera.cli.main import OK, the_client
from haptera.cli.output.printing import entities_option
from haptera.client import calls
from haptera.kinds import node
from haptera.kinds.node import Agent, Power, agent, power
from haptera.model.entity import parse_entity
from haptera.selectors.selector import fold_entities

# An agent runs on what is on: off, nobody desires it any more.
_OFF: Mapping[str, str | None] = {power.name: Power.OFF.value, agent.name: None}
_ON: Mapping[str, str | None] = {power.name: Power.ON.value}
_UP: Mapping[str, str | None] = {**_ON, agent.name: Agent.UP.value}


@click.command("power")
@click.argument("what", metavar="on|off|cycle", type=click.Choice(["on", "off", "cycle"]))
@click.argument("selector", metavar="NODE|SELECTOR", shell_complete=completing.selectors)
@click.option("--dry-run", is_flag=True, help="Only show what would run.")
@within_option
@terms_options
@entities_option
@click.pass_context
def switch(
    ctx: click.Context,
    what: str,
    selector: str,
    dry_run: bool,
    within: str,
    terms: WriteTerms,
    output: str,
) -> int:
    r"""Switch nodes on or off, or off and on again.

    The desired power becomes yours, whoever owned it; to give it back, `haptera unset SELECTOR
    power` and apply the site. Permits and budgets hold: a busy node is switched off once it is
    free. off also desires no agent any more; after on, apply the site for it, or `haptera set
    SELECTOR agent=up`. cycle waits until all are off, then switches them on, and desires the
    agents that were desired before.

    \b
    Examples:
      haptera power off rack1n1 -m "new fans"
      haptera power on rack1n[1-4]
      haptera power cycle rack1n1 --timeout 5m
    """
    mine = WriteTerms(take=True, digest=terms.digest, why=terms.why)
    then = WriteTerms(take=True, digest=None, why=terms.why)
    values = _ON if what == "on" else _OFF
    nodes = nodes_of(selector)
    before = [] if what != "cycle" else the_client(ctx).ask(calls.entities(nodes)).entities
    write(ctx, nodes, values, mine, dry_run=dry_run, output=output)
    if what != "cycle" or dry_run:
        return OK
    if (code := wait_for(the_client(ctx), nodes, f"{power.name}={Power.OFF}", within)) != OK:
        return code
    agents = {parse_entity(one.entity) for one in before if agent.name in one.desired}
    rest = {parse_entity(one.entity) for one in before} - agents
    for some, wanted in ((agents, _UP), (rest, _ON)):
        if some:
            write(ctx, fold_entities(some), wanted, then, dry_run=False, output=output)
    return OK


def nodes_of(selector: str) -> str:
    """The nodes among what is meant: a selector of nodes means all that is on them, too.

    >>> nodes_of("rack1n1"), nodes_of("node:rack1n1"), nodes_of("rack1n[1-4]")
    ('node:rack1n1', 'node:rack1n1', '(rack1n[1-4]) and node:*')
    """
    named = entity_named(selector)
    return named if is_one(named) else f"({selector}) and {node.kind.name}:*"
