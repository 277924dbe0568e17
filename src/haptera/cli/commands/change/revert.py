"""`haptera revert`: one write undone."""

from pathlib import Path
from typing import Final

import click

from haptera.cli.input.confirming import agreed, type_digest
from haptera.cli.input.plan_file import PlanFile, save_plan
from haptera.cli.input.terms import why_option
from haptera.cli.main import the_client
from haptera.cli.output.plans import counted, show_planned
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import AppliedView

_PATH: Final = click.Path(dir_okay=False, path_type=Path)


@click.command()
@answers(AppliedView)
@unwatched("it runs once; `haptera status --watch` shows the result")
@click.argument("revision", type=click.IntRange(1))
@click.option("--dry-run", is_flag=True, help="Only show what would change and run.")
@click.option(
    "--save", metavar="FILE", type=_PATH, help="Only save the plan, for `apply --plan FILE`."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@why_option
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
    r"""Undo the write that made REVISION, unless its values were changed since.

    Each value and its owner become what they were before. The plan is shown first, and only that
    plan is applied. If it may disrupt more than a tenth of the nodes, --yes is not enough: type the
    digest of the plan, or save the plan and apply it.

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
        say(f"{counted(answer)} written (revision {answer.revision})")
    else:
        print_entities([one.entity for one in answer.changes], answer, output)


def _agree(planned: AppliedView, *, unasked: bool) -> None:
    """Have a person agree to it, unless it may go `unasked`."""
    if planned.wide and unasked:
        do = "leave out --yes and type its digest, or --save it, then haptera apply --plan FILE"
        raise HapteraError(
            "the plan may disrupt too many nodes for --yes", do=do, code=Code.NOT_CONFIRMED
        )
    if planned.wide:
        type_digest(planned.plan)
    elif not unasked and not agreed("revert it?"):
        raise HapteraError(
            "not confirmed: nothing was written",
            do="answer y, or give --yes",
            code=Code.NOT_CONFIRMED,
        )
