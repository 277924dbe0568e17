"""`haptera apply` and `haptera plan`: a site file made so, or what would come of it."""

from collections import Counter

import click

from haptera.api.shapes import Applied
from haptera.cli.main import client_of, the_access
from haptera.cli.planning import print_groups, print_plan
from haptera.cli.printing import Format, output_option, print_data
from haptera.cli.problems import answer_problems
from haptera.cli.sites import files_argument, site_body
from haptera.cli.words import printable
from haptera.client import calls
from haptera.core.problem_line import answer_line, explained_line


@click.command()
@files_argument
@click.option("--dry-run", is_flag=True, help="Only say what would be changed.")
@click.option("--take", is_flag=True, help="Also what belongs to other owners.")
@click.option("-m", "--why", help="Why, for whoever reads the history.")
@output_option
@click.pass_context
def apply(
    ctx: click.Context,
    files: tuple[str, ...],
    dry_run: bool,
    take: bool,
    why: str | None,
    output: str,
) -> None:
    """Make a site's files what the cluster should be.

    FILE is a path, a folder of files, or - for standard input; several are one site.
    """
    access = the_access(ctx)
    body = site_body(files, access.constants)
    call = calls.apply(body, dry_run=dry_run, take=take, why=None if dry_run else why)
    answer = client_of(ctx, access).ask(call)
    if Format(output) is not Format.TABLE:
        print_data(answer, output)
        return
    would = "would be " if dry_run else ""
    click.echo(f"{counted(answer)} {would}written (revision {answer.revision})")
    if dry_run:
        for change in answer.changes:
            value = "" if change.name is None else f" {change.name}"
            value += "" if change.value is None else f"={printable(str(change.value))}"
            click.echo(f"  {change.does} {change.entity}{value}")
    else:
        print_groups(answer.plan)


@click.command()
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("--problem", metavar="FILE", help="Answer problems as JSON instead, one a line.")
@click.option("--explain", is_flag=True, help="With --problem: also why, and what else there is.")
@output_option
@click.pass_context
def plan(
    ctx: click.Context, files: tuple[str, ...], problem: str | None, explain: bool, output: str
) -> int:
    """Show what would run if a site's files were applied.

    FILE is a path, a folder of files, or - for standard input; several are one site.

    With --problem nothing is asked of a parent: the planner answers the problems in that file
    (docs/reference/problem.md). Exit codes then: 0 all have a chain, 2 some have none, 3 for some
    it gave up, 64 some are malformed; where several fit, the greatest.
    """
    if bool(files) == (problem is not None):
        raise click.UsageError("name either a site file or a file of problems (--problem)")
    if problem is not None:
        return answer_problems(problem, output, explained_line if explain else answer_line)
    if explain:
        raise click.UsageError("--explain goes with --problem; of entities, ask haptera chain")
    return _plan_site(ctx, files, output)


def _plan_site(ctx: click.Context, files: tuple[str, ...], output: str) -> int:
    access = the_access(ctx)
    body = site_body(files, access.constants)
    answer = client_of(ctx, access).ask(calls.apply(body, dry_run=True))
    if Format(output) is not Format.TABLE:
        print_data(answer, output)
        return 0
    click.echo(f"{counted(answer)} at revision {answer.revision}")
    print_plan(answer)
    return 0


def counted(answer: Applied) -> str:
    """How many changes, of which sort."""
    counts = Counter(change.does for change in answer.changes)
    each = ", ".join(f"{count} {does}" for does, count in sorted(counts.items()))
    total = len(answer.changes)
    return f"{total} change{'' if total == 1 else 's'}{f' ({each})' if each else ''}"
