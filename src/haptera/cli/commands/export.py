"""`haptera export`: what is in force, as a site file."""

import click

from haptera.cli.main import the_client
from haptera.cli.output.printing import Format, output_option, print_data
from haptera.client import calls


@click.command()
@click.option("--owner", metavar="OWNER", help="Only what this one has: site, user:NAME…")
@output_option
@click.pass_context
def export(ctx: click.Context, owner: str | None, output: str) -> None:
    r"""Write what is in force as a site file, which applies to nothing.

    The same state is written the same way each time, so that it can be kept in git.

    \b
    Examples:
      haptera export > site.yaml
      haptera export --owner site
    """
    answer = the_client(ctx).ask(calls.export(owner))
    if Format(output).for_people:
        click.echo(answer.text, nl=False)
    else:
        print_data(answer, output)
