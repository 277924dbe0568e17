"""`haptera rehearse`: play a change in virtual time before it is made."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from haptera.cli.input.rehearsing import RUNS, RehearsalOptions, rehearsal_options, taken_from
from haptera.cli.input.rolls import roll_body, roll_options, take_option
from haptera.cli.input.sites import files_argument, site_constants, site_files
from haptera.cli.main import NOT_CONVERGED, OK, client_of, the_access, the_client
from haptera.cli.output.printing import Format, is_terminal, print_data, say
from haptera.cli.output.rehearsals import print_compared, print_rehearsed, print_searched
from haptera.cli.verb import answers, unwatched
from haptera.client import Client, calls
from haptera.client.call import call
from haptera.controllers.roll.beginning import Patches, beginning, to_be_changed
from haptera.core.desired.ownership import Claim, desire
from haptera.kinds import KINDS, module, roll
from haptera.model.changes import Change, CloseIntent, Declare, OpenIntent
from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError
from haptera.model.walltime import duration
from haptera.rehearsal.comparing import ComparedRehearsals, first_differences
from haptera.rehearsal.finding import SearchedHistories, find
from haptera.rehearsal.present import Additions, Present, present_of, present_of_stored
from haptera.rehearsal.rehearse import Rehearsal, RehearsalRun, meant_in
from haptera.rehearsal.rehearse import rehearse as play
from haptera.rehearsal.summary import RehearsalSummary, summed_up
from haptera.rest import endpoints
from haptera.runtime.clock import wall_s
from haptera.site.apply.changes import changes
from haptera.site.model.site import Site, parse_site

Answer = TypeVar("Answer", RehearsalSummary, SearchedHistories, ComparedRehearsals)


class RehearseGroup(click.Group):
    """A group whose first word may be a file: `haptera rehearse FILE` rehearses `apply`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
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
        present = _present_of_backup(asked.backup, brings)
    else:
        present = _present(client_of(ctx, access), brings)
    changed = [_changes(one, present, Claim.TAKE if take else Claim.LEAVE) for one in sites]
    return _compared(present, asked, *changed) if vs else _rehearsed(present, asked, *changed)


def rehearsed_apply(ctx: click.Context, files: Sequence[str], claim: Claim) -> RehearsalSummary:
    """The rehearsal of a site's files as they would be applied now, as often as by default.

    Raises:
        HapteraError: the change would be refused.
    """
    access = the_access(ctx)
    site = parse_site(site_files(files), site_constants(files, access.constants))
    present = _present(client_of(ctx, access), Additions(site.modules, site.controllers))
    rehearsal = Rehearsal(_changes(site, present, claim))
    runs = [*_played(present, rehearsal, range(1, 1 + RUNS))]
    return _summary(present, rehearsal, runs)


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
    if asked.backup is None:
        client = the_client(ctx)
        present, known = _present(client), client.ask(calls.entities(selector)).entities
        owner, claim = f"user:{client.ask(calls.caller()).name}", Claim.LEAVE
    else:
        present = _present_of_backup(asked.backup)
        # Who asks, only a parent knows.
        known, owner, claim = meant_in(present, selector), "user:rehearsal", Claim.TAKE
    if options["take"]:
        claim = Claim.TAKE
    if roll.kind.name not in {one.name for one, _ in present.controllers}:
        do = "add `controllers: {roll: {}}` to its site file, and start it again"
        raise HapteraError("no controller of rolls runs at this parent", do=do)
    body = roll_body(selector, options)
    patches = beginning(body, to_be_changed(body, known), present.wall_s)
    return _rehearsed(present, asked, [*_patched(present, patches, owner, claim)])


def _present(client: Client, besides: Additions | None = None) -> Present:
    """The cluster as it is now, by what the parent says of it."""
    answer = client.ask(calls.entities())
    metrics = client.ask(call(endpoints.METRICS))
    return present_of(answer, wall_s(), metrics, client.ask(calls.jobs()).jobs, besides)


def _present_of_backup(file: Path, besides: Additions | None = None) -> Present:
    """The cluster as a backup has it."""
    from haptera.daemon.parent.backup import look_into

    made_s, stored, cluster = look_into(file)
    modules = () if cluster is None else cluster.modules
    controllers = () if cluster is None else tuple(one.name for one in cluster.controllers)
    return present_of_stored(stored, (*modules, *controllers), made_s, besides)


def _patched(present: Present, patches: Patches, owner: str, claim: Claim) -> Iterator[Change]:
    """The changes that patches make; what is not there yet is declared."""
    held = {one.entity: one.desired for one in present.entities}
    for name, patch in patches.items():
        entity = parse_entity(name)
        if entity not in held:
            yield Declare(entity, {}, owner)
        yield from desire(KINDS[entity.kind], entity, held.get(entity, {}), patch, owner, claim)


def _changes(site: Site, present: Present, claim: Claim) -> list[Change]:
    """The changes of the site, as far as they concern what a rehearsal knows."""
    return [
        one
        for one in changes(site, present.entities, claim)
        if not isinstance(one, OpenIntent | CloseIntent)
        and one.entity.kind in KINDS
        and one.entity.kind != module.kind.name
    ]


def _rehearsed(present: Present, asked: RehearsalOptions, changed: Sequence[Change]) -> int:
    """Play it, and print what came of it; an exit code."""
    rehearsal = asked.rehearsal(changed)
    if asked.finds:
        searched = find(present, rehearsal, asked.seeds, _show_tried)
        return _printed(searched, print_searched, asked.output)
    summary = _summary(present, rehearsal, [*_played(present, rehearsal, asked.seeds)])
    return _printed(summary, print_rehearsed, asked.output)


def _compared(
    present: Present, asked: RehearsalOptions, one: Sequence[Change], other: Sequence[Change]
) -> int:
    """Play both, and print how they differ; the exit code is that of the first."""
    if asked.finds:
        raise HapteraError("is of one change", where="--find", do="leave out --vs")
    scripts = [asked.rehearsal(changed) for changed in (one, other)]
    played = [[*_played(present, script, asked.seeds)] for script in scripts]
    summaries = [
        _summary(present, script, runs) for script, runs in zip(scripts, played, strict=True)
    ]
    first = first_differences(played[0][0], played[1][0])
    compared = ComparedRehearsals(summaries[0], summaries[1], first)
    return _printed(compared, print_compared, asked.output)


def _printed(answer: Answer, show: Callable[[Answer], None], output: str) -> int:
    if Format(output).for_people:
        show(answer)
    else:
        print_data(answer, output)
    return OK if answer.is_good else NOT_CONVERGED


def _summary(
    present: Present, rehearsal: Rehearsal, runs: Sequence[RehearsalRun]
) -> RehearsalSummary:
    measured = present.pace.usual_ns
    return summed_up(
        *(runs, present.revision, rehearsal.horizon_s, measured, present.missing),
        assumed=present.is_assumed,
    )


def _played(present: Present, rehearsal: Rehearsal, seeds: Sequence[int]) -> Iterator[RehearsalRun]:
    for number, seed in enumerate(seeds, start=1):
        yield play(present, rehearsal, seed, partial(_show, f"run {number} of {len(seeds)}"))
    _show("", None)


def _show_tried(number: int) -> None:
    _show(f"history {number}", None)


def _show(run: str, passed_s: float | None) -> None:
    """Say on a terminal how far a run is; None: leave the line empty."""
    if is_terminal() and sys.stderr.isatty():
        at = "" if passed_s is None else f", after {duration(int(passed_s) * 1_000)}"
        say(f"\r{run + at:<40}\r", err=True, nl=False)
