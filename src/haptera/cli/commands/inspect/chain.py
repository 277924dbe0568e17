"""`haptera chain`: what is still to be done with an entity, and what was tried."""

import click
import msgspec

from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.main import the_client
from haptera.cli.output.live.redrawing import keep_showing, watch_option
from haptera.cli.output.printing import Format, entities_option, print_entities
from haptera.cli.output.tables import print_sentence
from haptera.cli.output.words import (
    COLOURS,
    chain_lines,
    explained_lines,
    sentence,
    told,
    tried_lines,
)
from haptera.cli.verb import answers
from haptera.client import Client, calls
from haptera.model.answers.explained import Explained
from haptera.model.answers.views import EntityView, LinkView, TriedView


class ChainForm(msgspec.Struct, frozen=True):
    """What `chain -o json` prints: the parent's view of what is to be done, and its agent's.

    Without the word of an agent, `unasked` says why it could not be had, if there should be one.
    """

    chain: list[LinkView]
    explained: Explained | None
    tried: list[TriedView]
    agent: EntityView | None
    unasked: str | None


@click.command()
@answers(ChainForm)
@click.argument("entity", shell_complete=completing.entities)
@watch_option
@entities_option
@click.pass_context
def chain(ctx: click.Context, entity: str, watch: bool, output: str) -> None:
    r"""Show the steps left for ENTITY and why, and the attempts so far.

    Attempts are those of the parent and of the node's agent. A process forgets its attempts when it
    restarts.

    \b
    Examples:
      haptera chain rack1n1
      haptera chain service:web@rack1n1 -o json
      haptera chain --watch node:rack1n1
    """
    client, entity = the_client(ctx), entity_named(entity)
    if watch:
        events = calls.events(entity)
        keep_showing(client, events, lambda: _chain(client, entity, output), output)
    else:
        _chain(client, entity, output)


def _chain(client: Client, entity: str, output: str) -> None:
    view = client.ask(calls.detail(entity))
    if not Format(output).for_people:
        form = ChainForm(view.chain, view.explained, view.tried, view.agent, view.unasked)
        print_entities([entity], form, output)
        return
    print_sentence(sentence(view), output, colour=COLOURS[view.condition])
    told_of = [("parent", line) for line in tried_lines(view)]
    told_of += [("agent", line) for line in told(view)]
    told_of += [("next", line) for line in chain_lines(view.chain, view.explained)]
    for label, line in [*told_of, *explained_lines(view.explained)]:
        print_sentence(line, output, indent=f"  {label:<7} ")
