"""`haptera thaw`: what is frozen let go on."""

import click

from haptera.cli.commands.change.freeze import counted_entities, freeze_sentence
from haptera.cli.input import completing
from haptera.cli.input.terms import why_option
from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.rest.schemas import Thawed


@click.command()
@answers(Thawed)
@unwatched("it runs once; `haptera freeze --watch` shows what stays frozen")
@click.argument("selector", shell_complete=completing.selectors)
@why_option
@entities_option
@click.pass_context
def thaw(ctx: click.Context, selector: str, why: str | None, output: str) -> None:
    r"""Unfreeze what SELECTOR matches; the rest of each freeze stays in force.

    \b
    Examples:
      haptera thaw rack1n[1-4]
      haptera thaw service:web@rack1n1 -m "the fans are new"
    """
    answer = the_client(ctx).ask(calls.thaw(selector, why=why))
    if not Format(output).for_people:
        print_entities(answer.free, answer, output)
        return
    for one in answer.thawed:
        rest = "" if one.rest is None else f"; {one.rest} stays frozen"
        say(f"thawed: {one.thawed}, frozen by {one.owner}{rest}")
    say(f"{counted_entities(len(answer.free))} free again")
    for view in answer.freezes:
        say(f"still frozen: {freeze_sentence(view)}")
