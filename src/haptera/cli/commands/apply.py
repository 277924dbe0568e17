"""`haptera apply` and `haptera plan`: a site file made so, or what would come of it."""

from collections import Counter
from pathlib import Path
from typing import Final

import click

from haptera.cli.commands.plan_problems import answer_problems
from haptera.cli.commands.wait import CONVERGED, wait_for, within_option
from haptera.cli.input.confirming import confirmed
from haptera.cli.input.plan_file import PlanFile, apply_plan, read_plan, save_plan
from haptera.cli.input.problem_line import answer_line, explained_line
from haptera.cli.input.sites import site_body
from haptera.cli.input.terms import WriteTerms, terms_options
from haptera.cli.main import client_of, the_access, the_client
from haptera.cli.output.plans import planned_entities, print_groups, print_plan
from haptera.cli.output.printing import Format, entities_option, print_entities
from haptera.cli.output.words import printable
from haptera.client import ApiCall, calls
from haptera.model.entity import EntityId, parse_entity
from haptera.rest.schemas import AppliedView
from haptera.selectors.selector import fold_entities

UNDECLARES: Final = "undeclare"
_PATH: Final = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("--plan", "plan_file", metavar="FILE", type=_PATH, help="Apply a saved plan instead.")
@click.option("--dry-run", is_flag=True, help="Only say what would be changed.")
@click.option("--wait", "waits", is_flag=True, help="Until what it changed is as desired.")
@within_option
@terms_options
@entities_option
@click.pass_context
def apply(  # noqa: PLR0913 (an argument for each option)
    ctx: click.Context,
    files: tuple[str, ...],
    plan_file: Path | None,
    dry_run: bool,
    waits: bool,
    within: str,
    terms: WriteTerms,
    output: str,
) -> int:
    r"""Make a site's files what the cluster should be.

    FILE is a path, a folder of files, or - for standard input; several are one site.

    What may disrupt more than a tenth of the nodes needs the digest of its plan (--digest); at a
    terminal the plan is shown then, and its digest asked for. A saved plan (--plan) is applied only
    if nothing that it stands on has changed.

    \b
    Examples:
      haptera apply site.yaml -m "new racks" --wait --timeout 5m
      haptera plan site.yaml --save night.plan; haptera apply --plan night.plan
    """
    if bool(files) == (plan_file is not None):
        raise click.UsageError("name either files of a site or a saved plan (--plan)")
    if plan_file is None:
        answer = _apply_site(ctx, files, terms, dry_run=dry_run, output=output)
    elif dry_run or terms.take or terms.digest is not None:
        raise click.UsageError("with --plan, leave out --dry-run, --take and --digest")
    else:
        answer = apply_plan(the_client(ctx), read_plan(plan_file), terms.why)
    if not Format(output).for_people:
        print_entities([one.entity for one in answer.changes], answer, output)
    else:
        _tell(answer, dry_run=dry_run)
    return _wait(ctx, answer, within) if waits and not dry_run else 0


def _tell(answer: AppliedView, *, dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    click.echo(f"{counted(answer)} {would}written (revision {answer.revision})")
    if dry_run:
        _print_changes(answer)
    else:
        print_groups(answer.plan)


def _wait(ctx: click.Context, answer: AppliedView, within: str) -> int:
    """Wait until what was changed is as desired."""
    gone = {one.entity for one in answer.changes if one.does == UNDECLARES}
    names = {one.entity for one in answer.changes}
    if not names - gone:
        return 0
    meant = fold_entities(map(parse_entity, names - gone))
    return wait_for(the_client(ctx), meant, CONVERGED, within)


def _apply_site(
    ctx: click.Context, files: tuple[str, ...], terms: WriteTerms, *, dry_run: bool, output: str
) -> AppliedView:
    access = the_access(ctx)
    client, body = client_of(ctx, access), site_body(files, access.constants)
    dry = calls.apply(body, dry_run=True, take=terms.take)
    if dry_run:
        return client.ask(dry)

    def write(digest: str | None) -> ApiCall[AppliedView]:
        return calls.apply(body, take=terms.take, digest=digest, why=terms.why)

    if terms.digest is not None or not Format(output).for_people:
        return client.ask(write(terms.digest))
    return confirmed(client, dry, write)


@click.command()
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("--save", metavar="FILE", type=_PATH, help="Save it, for `apply --plan FILE`.")
@click.option("--take", is_flag=True, help="Also what belongs to other owners.")
@click.option("--problem", metavar="FILE", help="Answer problems as JSON instead, one a line.")
@click.option("--explain", is_flag=True, help="With --problem: also why, and what else there is.")
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

    FILE is a path, a folder of files, or - for standard input; several are one site. What is
    shown, docs/reference/plans.md explains.

    With --problem nothing is asked of a parent: the planner answers the problems in that file
    (docs/reference/problem.md). Exit codes then: 0 all have a chain, 2 some have none, 3 for some
    it gave up, 64 some are malformed; where several fit, the greatest.

    \b
    Examples:
      haptera plan site.yaml
      haptera plan site.yaml --save night.plan
      haptera plan --problem problem.json --explain
    """
    if bool(files) == (problem is not None):
        raise click.UsageError("name either a site file or a file of problems (--problem)")
    if problem is not None:
        if save is not None or take:
            raise click.UsageError("--save and --take go with a site's files")
        if Format(output) is Format.NAME:
            raise click.UsageError("problems have no names: leave out -o name")
        return answer_problems(problem, output, explained_line if explain else answer_line)
    if explain:
        raise click.UsageError("--explain goes with --problem; of entities, ask haptera chain")
    access = the_access(ctx)
    body = site_body(files, access.constants)
    answer = client_of(ctx, access).ask(calls.apply(body, dry_run=True, take=take))
    if save is not None:
        save_plan(save, PlanFile(answer.plan, 1, site=body, take=take))
    show_planned(answer, output)
    return 0


def show_planned(answer: AppliedView, output: str) -> None:
    """What would be changed, and what would run then."""
    if not Format(output).for_people:
        print_entities([*planned_entities(answer.plan)], answer, output)
        return
    click.echo(f"{counted(answer)} at revision {answer.revision}")
    print_plan(answer)


def _print_changes(answer: AppliedView) -> None:
    alike: dict[tuple[str, str, str], list[EntityId]] = {}
    for change in answer.changes:
        value = "" if change.name is None else f" {change.name}"
        value += "" if change.value is None else f"={printable(str(change.value))}"
        entity = parse_entity(change.entity)
        alike.setdefault((change.does, entity.title, value), []).append(entity)
    for (does, _, value), some in alike.items():
        click.echo(f"  {does} {fold_entities(some)}{value}")


def counted(answer: AppliedView) -> str:
    """How many changes, of which sort."""
    counts = Counter(change.does for change in answer.changes)
    each = ", ".join(f"{count} {does}" for does, count in sorted(counts.items()))
    total = len(answer.changes)
    return f"{total} change{'' if total == 1 else 's'}{f' ({each})' if each else ''}"
