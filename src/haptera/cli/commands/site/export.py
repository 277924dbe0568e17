"""`haptera export`: what is in force, as a site file."""

import click

from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, output_option, print_data, say
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.rest.schemas import Exported


@click.command()
@answers(Exported)
@unwatched("it is a snapshot; `haptera diff --watch FILE` shows the difference from a file")
@click.option("--owner", metavar="OWNER", help="Only values of this owner: site, user:NAME…")
@output_option
@click.pass_context
def export(ctx: click.Context, owner: str | None, output: str) -> None:
    r"""Write the state in force as a site file.

    Applying it changes nothing. The same state always gives the same text, so you can keep it in
    git.

    \b
    Examples:
      haptera export > site.yaml
      haptera export --owner site
    """
    answer = the_client(ctx).ask(calls.export(owner))
    if Format(output).for_people:
        say(answer.text, nl=False)
    else:
        print_data(answer, output)
