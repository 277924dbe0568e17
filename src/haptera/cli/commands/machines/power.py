"""`haptera power`: machines switched off, on, or off and on again, as people mean it."""

from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Final

import click

from haptera.cli.commands.change.set import is_one, write
from haptera.cli.commands.inspect.wait import wait_for, within_option
from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.input.selected import selected
from haptera.cli.input.terms import WriteTerms, terms_options
from haptera.cli.main import OK, the_client
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.client import Client, calls
from haptera.kinds import node
from haptera.kinds.node import Agent, Power, agent, power
from haptera.model.answers.views import Condition, EntityView
from haptera.model.entity import parse_entity
from haptera.model.errors import Code, HapteraError
from haptera.model.walltime import duration
from haptera.rest.schemas import Bulk, Entities, EntityPatch
from haptera.selectors.nodeset import expand, fold
from haptera.selectors.selector import fold_entities

WHAT: Final = ("on", "off", "cycle", "status")
# An agent runs on what is on: off, nobody desires it any more.
_OFF: Mapping[str, str | None] = {power.name: Power.OFF.value, agent.name: None}
_ON: Mapping[str, str | None] = {power.name: Power.ON.value}
_UP: Mapping[str, str | None] = {**_ON, agent.name: Agent.UP.value}


@click.command("power")
@answers(EntityView, Bulk)
@unwatched("it runs once; `haptera status --watch` shows the result")
@click.argument("what", metavar="on|off|cycle|status", type=click.Choice(WHAT))
@click.argument("selector", metavar="NODE|SELECTOR", shell_complete=completing.selectors)
@click.option("--dry-run", "how", flag_value="dry-run", help="Only show what would run.")
@click.option(
    "--override",
    "how",
    flag_value="override",
    help="Need no permit of nodes whose agents are silent.",
)
@within_option
@terms_options
@entities_option
@click.pass_context
def switch(
    ctx: click.Context,
    what: str,
    selector: str,
    how: str | None,
    within: str,
    terms: WriteTerms,
    output: str,
) -> int:
    r"""Switch nodes on or off, or off and on again; or show their power.

    Where the site or somebody else owns the desired power, --take makes it yours; to give it back,
    `haptera unset SELECTOR power` and apply the site. Permits and budgets hold: a busy node is
    switched off once it is free. off also desires no agent any more; after on, apply the site for
    it, or `haptera set SELECTOR agent=up`. cycle waits until all are off, then switches them on,
    and desires the agents that were desired before; if they are not off in time, it takes back what
    it desired.

    A node whose agent is silent cannot permit anything: --override goes on without, for which
    --why is needed, and a token of scope admin. Work that still runs there may be lost.

    \b
    Examples:
      haptera power off rack1n1 --take -m "new fans"
      haptera power cycle rack1n1 --within 5m
      haptera power cycle rack1n3 --override -m "it hangs"
      haptera power status rack1n[1-4]
    """
    nodes, client = nodes_of(selector), the_client(ctx)
    before = selected(client, nodes)
    if what == "status":
        show_power(before, output)
        return OK
    values, dry_run = _ON if what == "on" else _OFF, how == "dry-run"
    if not dry_run and what != "on":
        silent = waits_for_good(client, before, values, take=terms.take)
        if how == "override":
            for name in silent:
                client.ask(calls.override(name, why=_reason(ctx, terms)))
        elif silent and what == "cycle":
            raise _dead_end(selector, silent, terms)
    revision = write(ctx, nodes, values, terms, dry_run=dry_run, output=output)
    if what != "cycle" or dry_run:
        return OK
    if (code := wait_for(client, nodes, f"{power.name}={Power.OFF}", within)) != OK:
        if revision > before.revision:
            take_back(client, revision, terms.why)
        return code
    _switch_on(ctx, before, terms, output)
    return OK


def _switch_on(ctx: click.Context, before: Entities, terms: WriteTerms, output: str) -> None:
    then = WriteTerms(take=terms.take, digest=None, why=terms.why)
    agents = {parse_entity(one.entity) for one in before.entities if agent.name in one.desired}
    rest = {parse_entity(one.entity) for one in before.entities} - agents
    for some, wanted in ((agents, _UP), (rest, _ON)):
        if some:
            write(ctx, fold_entities(some), wanted, then, dry_run=False, output=output)


def show_power(nodes: Entities, output: str) -> None:
    """Each node's power, as it was read and as it is desired."""
    if not Format(output).for_people:
        print_entities([one.entity for one in nodes.entities], nodes, output)
        return
    rows = []
    for one in nodes.entities:
        seen, wanted = one.observed.get(power.name), one.desired.get(power.name)
        is_now = "unknown" if seen is None else f"{seen.value}{'' if seen.known else '?'}"
        age = "" if seen is None else duration(seen.age_ms)
        rows.append((one.name, is_now, age, "" if wanted is None else str(wanted.value)))
    print_table(("NODE", "POWER", "READ", "DESIRED"), rows, output)


def waits_for_good(
    client: Client, nodes: Entities, values: Mapping[str, str | None], *, take: bool
) -> tuple[str, ...]:
    """Those of the nodes on which these values would wait for what nobody but a person brings."""
    patches = [EntityPatch(one.entity, {**values}) for one in nodes.entities]
    call = calls.patch(patches, all_or_nothing=True, dry_run=True, take=take)
    groups = [group for plan in client.ask(call).plans for group in plan.groups]
    waits = [one for one in groups if one.chain and one.condition is Condition.WAITING]
    meant = {one.name for one in nodes.entities}
    return tuple(name for one in waits for name in expand(one.on or "") if name in meant)


def take_back(client: Client, revision: int, why: str | None) -> None:
    """Desire again what was desired before this write."""
    try:
        digest = client.ask(calls.revert(revision, dry_run=True)).plan.digest
        client.ask(calls.revert(revision, digest=digest, why=why))
    except HapteraError as error:
        say(f"what it desired stays desired: {error}", err=True)
        return
    say("what was desired before is desired again", err=True)


def _reason(ctx: click.Context, terms: WriteTerms) -> str:
    if terms.why is None:
        raise click.UsageError("--override needs --why, which is kept in the audit.", ctx)
    return terms.why


def _dead_end(selector: str, silent: Iterable[str], terms: WriteTerms) -> HapteraError:
    names, take = fold(silent), " --take" if terms.take else ""
    return HapteraError(
        f"no agent is heard on {names} that could permit this: it might wait for good, and nothing"
        " was written",
        do=f"if no work can be lost there: haptera power cycle {quote(selector)}{take} --override"
        " --why TEXT; else see why: haptera why " + quote(names),
        code=Code.CONFLICT,
    )


def nodes_of(selector: str) -> str:
    """The nodes among what is meant: a selector of nodes means all that is on them, too.

    >>> nodes_of("rack1n1"), nodes_of("node:rack1n1"), nodes_of("rack1n[1-4]")
    ('node:rack1n1', 'node:rack1n1', '(rack1n[1-4]) and node:*')
    """
    named = entity_named(selector)
    return named if is_one(named) else f"({selector}) and {node.kind.name}:*"
