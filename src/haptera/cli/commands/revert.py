"""`haptera revert`: one write undone."""

from pathlib import Path
from typing import Final

import click

from haptera.cli.input.confirming import agreed, type_digest
from haptera.cli.input.plan_file import PlanFile, save_plan
from haptera.cli.main import the_client
from haptera.cli.output.plans import counted, show_planned
from haptera.cli.output.printing import Format, entities_option, print_entities
from haptera.client import calls
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import AppliedView

_PATH: Final = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("revision", type=click.IntRange(1))
@click.option("--dry-run", is_flag=True, help="Only show what would be changed and would run.")
@click.option("--save", metavar="FILE", type=_PATH, help="Only save it, for `apply --plan FILE`.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("-m", "--why", help="Why, for whoever reads the history.")
@entities_option
@click.pass_context
def revert(
    ctx: click.Context,
    revision: int,
    dry_run: bool,
    save: Path | None,
    yes: bool,
    why: str | None,
    output: str,
) -> None:
    r"""Undo the write that made REVISION, where nothing of it was changed since.

    Each value becomes what it was before, and belongs to whom it did. What would run is shown
    first, and only that is done. What may disrupt more than a tenth of the nodes is not done by
    --yes: type the digest of its plan, or save the plan and apply that.

    \b
    Examples:
      haptera revert 168 --dry-run
      haptera revert 168 --save back.plan; haptera apply --plan back.plan
    """
    client = the_client(ctx)
    planned = client.ask(calls.revert(revision, dry_run=True))
    if save is not None:
        save_plan(save, PlanFile(planned.plan, 1, revert=revision))
    only_shown = dry_run or save is not None
    if only_shown or Format(output).for_people:
        show_planned(planned, output)
    if only_shown:
        return
    _agree(planned, unasked=yes)
    answer = client.ask(calls.revert(revision, digest=planned.plan.digest, why=why))
    if Format(output).for_people:
        click.echo(f"{counted(answer)} written (revision {answer.revision})")
    else:
        print_entities([one.entity for one in answer.changes], answer, output)


def _agree(planned: AppliedView, *, unasked: bool) -> None:
    """Have a person agree to it, unless it may go `unasked`."""
    if planned.wide and unasked:
        do = "leave out --yes and type its digest, or --save it, then haptera apply --plan"
        raise HapteraError(
            "it may disrupt too many nodes to be done unseen", do=do, code=Code.NOT_CONFIRMED
        )
    if planned.wide:
        type_digest(planned.plan)
    elif not unasked and not agreed("revert it?"):
        raise HapteraError(
            "nobody agreed: nothing was written",
            do="answer y, or say --yes",
            code=Code.NOT_CONFIRMED,
        )
