"""`haptera plan`: the parts that would run if a site's files were applied."""

import shlex
from pathlib import Path
from typing import Final

import click

from haptera.cli.input.plan_file import PlanFile, save_plan
from haptera.cli.input.sites import site_body
from haptera.cli.main import client_of, the_access
from haptera.cli.output.plans import show_planned
from haptera.cli.output.printing import entities_option
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.rest.schemas import AppliedView

_PATH: Final = click.Path(dir_okay=False, path_type=Path)


@click.command()
@answers(AppliedView)
@unwatched("a plan is a snapshot: `--save` it, and `haptera apply --plan FILE` shows changes since")
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("--save", metavar="FILE", type=_PATH, help="Save the plan, for `apply --plan FILE`.")
@click.option("--take", is_flag=True, help="Take over values of other owners.")
@click.option("--problem", hidden=True)
@click.option("--explain", hidden=True, is_flag=True)
@entities_option
@click.pass_context
def plan(
    ctx: click.Context,
    files: tuple[str, ...],
    save: Path | None,
    take: bool,
    problem: str | None,
    explain: bool,
    output: str,
) -> int:
    r"""Show what would run if a site's files were applied.

    FILE is a path, a folder, or - for standard input; several files are one site.
    docs/reference/plans.md explains the output.

    \b
    Examples:
      haptera plan site.yaml
      haptera plan site.yaml --save night.plan
    """
    if problem is not None:
        more = " --explain" if explain else ""
        command = f"python -m haptera.planner {shlex.quote(problem)}{more}"
        raise click.UsageError(f"problems are solved by another command: {command}")
    if explain:
        raise click.UsageError("plans are explained for each entity: haptera chain ENTITY")
    if not files:
        raise click.UsageError("name a site file, a folder, or -")
    access = the_access(ctx)
    body = site_body(files, access.constants)
    answer = client_of(ctx, access).ask(calls.apply(body, dry_run=True, take=take))
    if save is not None:
        save_plan(save, PlanFile(answer.plan, 1, site=body, take=take))
    show_planned(answer, output)
    return 0
