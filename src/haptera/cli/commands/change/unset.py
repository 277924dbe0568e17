"""`haptera unset`: values of an entity, or of many, desired no more."""

import click

from haptera.cli.commands.change.set import dry_run_option, entity_argument, write
from haptera.cli.input import completing
from haptera.cli.input.terms import WriteTerms, terms_options
from haptera.cli.output.printing import entities_option
from haptera.cli.verb import answers, unwatched
from haptera.model.answers.views import EntityView
from haptera.rest.schemas import Bulk


@click.command("unset")
@answers(EntityView, Bulk)
@unwatched("it runs once; `haptera status --watch` shows the result")
@entity_argument
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completing.variables
)
@dry_run_option
@terms_options
@entities_option
@click.pass_context
def unset_values(
    ctx: click.Context,
    entity: str,
    names: tuple[str, ...],
    dry_run: bool,
    terms: WriteTerms,
    output: str,
) -> None:
    r"""Remove desired values of ENTITY, or of what SELECTOR matches.

    Several entities are written together. Values from a site file come back when the site is
    applied again.

    \b
    Examples:
      haptera unset node:n1 power
      haptera unset service:web@n1 port run -m "as all others"
      haptera unset 'node:rack1* and power=off' power
    """
    write(ctx, entity, dict.fromkeys(names), terms, dry_run=dry_run, output=output)
