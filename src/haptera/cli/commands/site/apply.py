"""`haptera apply`: a site's files made what the cluster should be."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from haptera.cli.commands.inspect.wait import CONVERGED, wait_for, within_option
from haptera.cli.input.confirming import confirmed
from haptera.cli.input.plan_file import apply_plan, read_plan
from haptera.cli.input.sites import site_body
from haptera.cli.input.terms import WriteTerms, terms_options
from haptera.cli.main import client_of, the_access, the_client
from haptera.cli.output.plans import counted, print_groups
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.output.words import printable
from haptera.cli.verb import answers, unwatched
from haptera.client import ApiCall, calls, find
from haptera.core.desired.ownership import Claim
from haptera.model.entity import EntityId, parse_entity
from haptera.rest.schemas import AppliedView
from haptera.selectors.selector import fold_entities
from haptera.selectors.selector_ast import NODE
from haptera.site.syntax.template import LAB_OCTET

DECLARES: Final = "declare"
UNDECLARES: Final = "undeclare"
_STANDARD_INPUT: Final = "-"
_PATH: Final = click.Path(dir_okay=False, path_type=Path)


@click.command()
@answers(AppliedView)
@unwatched("it runs once; `haptera status --watch` shows the result")
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("--plan", "plan_file", metavar="FILE", type=_PATH, help="Apply a saved plan instead.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--rehearsed", is_flag=True, help="Rehearse it first; refuse it if that ends badly.")
@click.option("--wait", "waits", is_flag=True, help="Wait until what it changed is as desired.")
@within_option
@terms_options
@entities_option
@click.pass_context
def apply(  # noqa: PLR0913 (an argument for each option)
    ctx: click.Context,
    files: tuple[str, ...],
    plan_file: Path | None,
    dry_run: bool,
    rehearsed: bool,
    waits: bool,
    within: str,
    terms: WriteTerms,
    output: str,
) -> int:
    r"""Apply a site's files: what they say becomes the desired state.

    FILE is a path, a folder, or - for standard input; several files are one site.

    A write that may disrupt more than a tenth of the nodes needs the digest of its plan (--digest).
    At a terminal the plan is shown first, and you type its digest. A saved plan (--plan) is applied
    only if the state it was made for has not changed. With --rehearsed it is played on a copy
    first, as haptera rehearse does, and refused where a run is not done within a day.

    \b
    Examples:
      haptera apply site.yaml -m "new racks" --wait --within 5m
      haptera plan site.yaml --save night.plan; haptera apply --plan night.plan
    """
    if bool(files) == (plan_file is not None):
        raise click.UsageError("name either files of a site or a saved plan (--plan)")
    if rehearsed and (plan_file is not None or _STANDARD_INPUT in files):
        raise click.UsageError("--rehearsed needs the files of a site: leave out --plan and -")
    if rehearsed:
        _check_rehearsed(ctx, files, Claim.TAKE if terms.take else Claim.LEAVE)
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
    if LAB_OCTET in find(ctx.obj).access.constants:
        _tell_of_lab(answer)
    return _wait(ctx, answer, within) if waits and not dry_run else 0


def _check_rehearsed(ctx: click.Context, files: Sequence[str], claim: Claim) -> None:
    # Only here: without a rehearsal nobody waits for the engine to be imported.
    from haptera.cli.rehearsed import check_rehearsed, rehearsed_apply

    summary = rehearsed_apply(ctx, files, claim)
    check_rehearsed(summary, f"haptera rehearse {shlex.join(files)}")


def _tell(answer: AppliedView, *, dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    say(f"{counted(answer)} {would}written (revision {answer.revision})")
    if dry_run:
        _print_changes(answer)
    else:
        print_groups(answer.plan)
    if answer.not_started:
        names = ", ".join(answer.not_started)
        do = "restart it with this site (haptera serve --site FILE)"
        say(f"not in use: {names}: the parent started without; {do}", err=True)


def _tell_of_lab(answer: AppliedView) -> None:
    """The machines of a lab are those of the site with which it was started."""
    changed = [(one.does, parse_entity(one.entity)) for one in answer.changes]
    for does, told in ((DECLARES, "no machine runs for"), (UNDECLARES, "a machine still runs for")):
        if nodes := [one for said, one in changed if said == does and one.kind == NODE]:
            names = fold_entities(nodes)
            do = "restart the lab with this site (haptera lab --site FILE)"
            say(f"{told} {names}: {do}", err=True)


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


def _print_changes(answer: AppliedView) -> None:
    alike: dict[tuple[str, str, str], list[EntityId]] = {}
    for change in answer.changes:
        value = "" if change.name is None else f" {change.name}"
        value += "" if change.value is None else f"={printable(str(change.value))}"
        entity = parse_entity(change.entity)
        alike.setdefault((change.does, entity.title, value), []).append(entity)
    for (does, _, value), some in alike.items():
        say(f"  {does} {fold_entities(some)}{value}")
