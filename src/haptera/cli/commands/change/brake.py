"""`haptera brake`: whether many nodes have vanished at once, and letting go on all the same."""

import click

from haptera.cli.input.terms import why_option
from haptera.cli.main import the_client
from haptera.cli.output.live.redrawing import keep_asking, only_tables, watch_option
from haptera.cli.output.printing import Format, output_option, print_data, say
from haptera.cli.verb import answers
from haptera.client import calls
from haptera.model.answers.views import BrakeView
from haptera.model.walltime import duration


@click.command()
@answers(BrakeView)
@click.option("--release", is_flag=True, help="Release the brake: the cause is known.")
@why_option
@watch_option
@output_option
@click.pass_context
def brake(ctx: click.Context, release: bool, why: str | None, watch: bool, output: str) -> None:
    r"""Show whether the brake is on, which stops all disruptive steps.

    The brake goes on by itself when many nodes fall silent at once, and off when they are back.

    \b
    Examples:
      haptera brake
      haptera brake --watch
      haptera brake --release -m "a switch was down"
    """
    client = the_client(ctx)
    if watch:
        if release:
            raise click.UsageError("--release is done once: leave --watch out")
        only_tables(output)
        keep_asking(client, calls.brake(), _tell)
        return
    view = client.ask(calls.release_brake(why=why) if release else calls.brake())
    if not Format(output).for_people:
        print_data(view, output)
    elif release and view.why is not None:
        say(f"the brake is released: {view.why}")
    else:
        _tell(view)


def _tell(view: BrakeView) -> None:
    if view.why is None:
        say("the brake is off")
    else:
        say(f"the brake is on for {duration(view.left_ms)} more: {view.why}", fg="red")
