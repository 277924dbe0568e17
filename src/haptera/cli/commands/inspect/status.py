"""`haptera status`: how the cluster stands, typed most of all and so importing least."""

import click

from haptera.cli.input import completing
from haptera.cli.main import NOT_CONVERGED, NOTHING_DESIRED, the_client
from haptera.cli.output.live.redrawing import keep_showing, watch_option
from haptera.cli.output.printing import Format, entities_option, print_entities, print_error, say
from haptera.cli.output.standing import print_standing, print_subtrees
from haptera.cli.output.words import in_front, printable
from haptera.cli.verb import answers
from haptera.client import Client, calls
from haptera.model.answers.views import SETTLED
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import Entities


@click.command()
@answers(Entities)
@click.argument("selector", required=False, shell_complete=completing.selectors)
@click.option("--check", is_flag=True, help="Exit with 4 unless all is as desired; see above.")
@watch_option
@entities_option
@click.pass_context
def status(ctx: click.Context, selector: str | None, check: bool, watch: bool, output: str) -> None:
    r"""Show the state of the cluster, or of what SELECTOR matches.

    SELECTOR is rack1n[1-4] (these nodes and everything on them), service:web@rack*, 'power!=on and
    @gpu', and so on.

    Modules are shown only if something is wrong with them; `haptera get module` shows all.

    What is wrong with haptera itself comes first: a full disk of the parent, silent parents.

    With --check, exits with 4 unless everything is as desired and, without SELECTOR, nothing is
    wrong with haptera, with 5 if nothing is desired yet (no site was applied), and with 1 if
    SELECTOR matches nothing.

    \b
    Examples:
      haptera status
      haptera status --check 'rack1* and power=on'
      haptera status --watch rack1n[1-4]
    """
    client = the_client(ctx)
    if watch:
        if check:
            raise click.UsageError("--watch never ends: leave out --check")
        keep_showing(
            client, calls.events(selector), lambda: _show(client, selector, output), output
        )
        return
    if check and client.ask(calls.summary()).revision == 0:
        print_error(
            HapteraError(
                "nothing is desired yet",
                do="apply a site: haptera apply FILE",
                code=Code.NOT_CONVERGED,
            )
        )
        ctx.exit(NOTHING_DESIRED)
    if Format(output).for_people:
        settled = _show(client, selector, output)
    else:
        from haptera.cli.input.selected import selected  # only here: it parses

        answer = selected(client, selector)
        print_entities([view.entity for view in answer.entities], answer, output)
        settled = all(view.condition in SETTLED for view in answer.entities)
        settled = settled and not (selector is None and answer.faults)
    if check and not settled:
        ctx.exit(NOT_CONVERGED)


def _show(client: Client, selector: str | None, output: str) -> bool:
    """Print what stands alike together; whether all is settled."""
    answer = client.ask(calls.status(selector))
    alike, faults = answer.alike, answer.faults if selector is None else []
    for fault in faults:
        say(f"error: {printable(fault)}", fg="red")
    if selector is not None:
        from haptera.cli.input.selected import check_there
        from haptera.selectors.nodeset import expand

        check_there(client, selector, {name for one in alike for name in expand(one.on)})
    shown = [one for one in alike if in_front(one.kind, one.condition)]
    print_standing(shown, output)
    if selector is None:
        print_subtrees(client.ask(calls.summary()).subtrees, output)
    if not alike:
        say("there are no entities")
    return not faults and all(one.condition in SETTLED for one in alike)
