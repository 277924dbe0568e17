"""`haptera rehearse`: play a change in virtual time before it is made."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from haptera.cli.input.recorded import recorded_roll
from haptera.cli.input.rehearsing import (
    RehearsalOptions,
    rehearsal_options,
    runs_option,
    seed_option,
    taken_from,
)
from haptera.cli.input.rolls import roll_options, take_option
from haptera.cli.input.sites import files_argument, site_constants, site_files
from haptera.cli.main import NOT_CONVERGED, OK, client_of, the_access, the_client
from haptera.cli.output.drawing.rehearsal_picture import rehearsal_picture
from haptera.cli.output.printing import Format, output_option, print_data
from haptera.cli.output.rehearsals import (
    print_compared,
    print_compared_roll,
    print_rehearsed,
    print_searched,
)
from haptera.cli.rehearsed import (
    copied,
    copied_backup,
    copied_past,
    played_runs,
    roll_script,
    show_tried,
    site_changes,
    summarized,
)
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.core.desired.ownership import Claim
from haptera.kinds import roll, system
from haptera.model.changes import Change
from haptera.model.entity import check_name
from haptera.model.errors import Code, HapteraError
from haptera.rehearsal.comparing import ComparedRehearsals, first_differences
from haptera.rehearsal.finding import SearchedHistories, find
from haptera.rehearsal.present import Additions, Present
from haptera.rehearsal.rehearse import Rehearsal, RehearsalRun
from haptera.rehearsal.summary import RehearsalSummary
from haptera.rehearsal.truth import ComparedRoll, compared_roll, written
from haptera.rest.query import LIMIT_MAX
from haptera.site.model.site import parse_site

Answer = TypeVar("Answer", RehearsalSummary, SearchedHistories, ComparedRehearsals)


class RehearseGroup(click.Group):
    """A group whose first word may be a file: `haptera rehearse FILE` rehearses `apply`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["--compare"]:
            args = ["compare", *args[1:]]
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["apply", *args]
        return super().parse_args(ctx, args)


@click.group("rehearse", cls=RehearseGroup)
def rehearse() -> None:
    """Play a change on a copy of the cluster, in virtual time: haptera rehearse FILE."""


@rehearse.command("apply")
@answers(RehearsalSummary, SearchedHistories, ComparedRehearsals)
@unwatched("a rehearsal is of one moment: run it again")
@files_argument
@take_option
@click.option(
    "--vs",
    metavar="FILE",
    multiple=True,
    help="Rehearse these files, too, and show where the two first differ.",
)
@rehearsal_options
@click.pass_context
def apply(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    take: bool,
    vs: tuple[str, ...],
    **options: Any,
) -> int:
    r"""Play what applying a site's files would do, on a copy of the cluster, in virtual time.

    The copy has the desired and observed state of the cluster, its modules' declared parts, and
    how long these usually take and how often they fail there. Nothing of the cluster is changed: a
    token that may read is enough. docs/explain/rehearsals.md says what the copy leaves out.

    Exits with 4 if a run was not done within the time, or did not hold what should hold.

    \b
    Examples:
      haptera rehearse site.yaml
      haptera rehearse site.yaml --runs 20 --fault 'rack3n[1-40]: power cut at 1h'
      haptera rehearse site.yaml --vs site-with-wider-budgets.yaml
      haptera rehearse site.yaml --hold 'never: service:web below 3' --find --runs 50
    """
    asked = taken_from(options)
    access = the_access(ctx) if asked.backup is None else None
    own = {} if access is None else access.constants
    sites = [parse_site(site_files(one), site_constants(one, own)) for one in (files, vs) if one]
    brings = Additions(
        [name for site in sites for name in site.modules],
        [place for site in reversed(sites) for place in site.controllers],
    )
    if access is None:
        assert asked.backup is not None
        present = copied_backup(asked.backup, brings)
    else:
        present = copied(client_of(ctx, access), brings)
    changed = [site_changes(one, present, Claim.TAKE if take else Claim.LEAVE) for one in sites]
    return _compared(present, asked, *changed) if vs else _rehearsed(present, asked, *changed)


@rehearse.command("roll")
@answers(RehearsalSummary, SearchedHistories)
@unwatched("a rehearsal is of one moment: run it again")
@roll_options
@rehearsal_options
@click.pass_context
def rehearse_roll(ctx: click.Context, /, selector: str, **options: Any) -> int:
    r"""Play a roll of the systems that SELECTOR matches to an image, on a copy of the cluster.

    It says when the roll would be done, what is disrupted meanwhile, which budget or which jobs
    hold it up, and, with a fault, where it would halt.

    \b
    Examples:
      haptera rehearse roll system:compute@n[1-4] --image debian-b --take
      haptera rehearse roll rack1n[1-40] --image debian-b --fault 'rack1n7: image is bad for 1d'
    """
    asked = taken_from(options)
    present, changed = roll_script(ctx, selector, options, asked.backup)
    return _rehearsed(present, asked, changed)


@rehearse.command("compare")
@answers(ComparedRoll)
@unwatched("a roll that has happened does not change")
@click.argument("name", metavar="ROLL")
@runs_option
@seed_option
@output_option
@click.pass_context
def compare(ctx: click.Context, name: str, runs: int, seed: int, output: str) -> None:
    r"""Rehearse a roll that has happened, and show how far off the rehearsal is.

    It starts from the state before the roll's write, as recorded in the history, and takes the
    durations that are measured today.

    \b
    Examples:
      haptera rehearse compare debian-b
      haptera rehearse --compare debian-b --runs 20 -o json
    """
    client = the_client(ctx)
    start, told = recorded_roll(client, check_name(name))
    select = f"{roll.kind.name}:{name} or {system.kind.name}:*"
    changed = client.ask(calls.history(select, limit=LIMIT_MAX)).changes
    own = [one for one in changed if one.revision == start.revision]
    present = copied_past(client, start, own[0].owner)
    played = [*played_runs(present, Rehearsal([*written(own)]), range(seed, seed + runs))]
    compared = compared_roll(told, start.revision, played, present.missing)
    if Format(output).for_people:
        print_compared_roll(compared)
    else:
        print_data(compared, output)


def _rehearsed(present: Present, asked: RehearsalOptions, changed: Sequence[Change]) -> int:
    """Play it, and print what came of it; an exit code."""
    rehearsal = asked.rehearsal(changed)
    if asked.finds:
        if asked.timeline is not None:
            raise click.UsageError("--find shows a history's last steps: leave out --timeline")
        searched = find(present, rehearsal, asked.seeds, show_tried)
        return _printed(searched, print_searched, asked.output)
    runs = [*played_runs(present, rehearsal, asked.seeds)]
    _draw(runs[0], asked.timeline)
    summary = summarized(present, rehearsal, runs)
    return _printed(summary, print_rehearsed, asked.output)


def _compared(
    present: Present, asked: RehearsalOptions, one: Sequence[Change], other: Sequence[Change]
) -> int:
    """Play both, and print how they differ; the exit code is that of the first."""
    if asked.finds:
        raise HapteraError("is of one change", where="--find", do="leave out --vs")
    scripts = [asked.rehearsal(changed) for changed in (one, other)]
    played = [[*played_runs(present, script, asked.seeds)] for script in scripts]
    _draw(played[0][0], asked.timeline)
    summaries = [
        summarized(present, script, runs) for script, runs in zip(scripts, played, strict=True)
    ]
    first = first_differences(played[0][0], played[1][0])
    compared = ComparedRehearsals(summaries[0], summaries[1], first)
    return _printed(compared, print_compared, asked.output)


def _draw(run: RehearsalRun, file: Path | None) -> None:
    if file is None:
        return
    try:
        file.write_text(rehearsal_picture(run), "utf-8")
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise HapteraError(
            what, where=str(file), do="name another file", code=Code.FILE_UNWRITABLE
        ) from None


def _printed(answer: Answer, show: Callable[[Answer], None], output: str) -> int:
    if Format(output).for_people:
        show(answer)
    else:
        print_data(answer, output)
    return OK if answer.is_good else NOT_CONVERGED
