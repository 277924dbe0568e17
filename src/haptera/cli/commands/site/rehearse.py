"""`haptera rehearse`: play a change in virtual time before it is made."""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import click

from haptera.cli.input.sites import files_argument, site_constants, site_files
from haptera.cli.main import NOT_CONVERGED, client_of, the_access
from haptera.cli.output.printing import Format, is_terminal, output_option, print_data, say
from haptera.cli.output.rehearsals import print_rehearsed
from haptera.client import calls
from haptera.client.call import ApiCall
from haptera.core.desired.ownership import Claim
from haptera.kinds import KINDS, module
from haptera.model.changes import Change, CloseIntent, OpenIntent
from haptera.model.errors import LimitError
from haptera.model.walltime import duration, parse_duration_ms
from haptera.rehearsal.faults import FAULTS, parse_fault
from haptera.rehearsal.invariants import parse_invariant
from haptera.rehearsal.present import Present, present_of
from haptera.rehearsal.rehearse import DAYS_MAX, Rehearsal, RehearsalRun
from haptera.rehearsal.rehearse import rehearse as play
from haptera.rehearsal.summary import summed_up
from haptera.site.apply.changes import changes
from haptera.site.model.site import Site, parse_site

RUNS_MAX: Final = 1_000
DAY_MS: Final = 86_400_000


@click.command()
@files_argument
@click.option("--runs", metavar="N", type=click.IntRange(1, RUNS_MAX), default=5, show_default=True)
@click.option(
    "--seed", metavar="N", type=int, default=1, show_default=True, help="Of the first run."
)
@click.option("--within", metavar="TIME", default="1d", show_default=True, help="The horizon.")
@click.option("--take", is_flag=True, help="Take over values of other owners.")
@click.option(
    "--fault",
    "faults",
    metavar="TEXT",
    multiple=True,
    help=f"'NODES: WHAT at TIME for TIME': {', '.join(FAULTS)}.",
)
@click.option(
    "--hold",
    "invariants",
    metavar="TEXT",
    multiple=True,
    help="'always: count(SELECTOR) <= N' or 'never: count(SELECTOR) below N%'.",
)
@output_option
@click.pass_context
def rehearse(  # noqa: PLR0913 (an argument for each option)
    ctx: click.Context,
    files: tuple[str, ...],
    runs: int,
    seed: int,
    within: str,
    take: bool,
    faults: tuple[str, ...],
    invariants: tuple[str, ...],
    output: str,
) -> None:
    r"""Play what applying a site's files would do, on a copy of the cluster, in virtual time.

    The copy has the desired and observed state of the cluster, its modules' declared parts, and
    how long these usually take and how often they fail there. Nothing of the cluster is changed: a
    token that may read is enough. docs/explain/rehearsals.md says what the copy leaves out.

    Exits with 4 if a run was not done within the time, or did not hold what should hold.

    \b
    Examples:
      haptera rehearse site.yaml
      haptera rehearse site.yaml --runs 20 --fault 'rack3n[1-40]: power cut at 1h'
      haptera rehearse site.yaml --hold 'never: count(service:web and run=running) below 3'
    """
    access = the_access(ctx)
    client = client_of(ctx, access)
    horizon_ms = parse_duration_ms(within)
    if not 0 < horizon_ms <= DAYS_MAX * DAY_MS:
        raise LimitError(f"{within} is no horizon", where="--within", do=f"up to {DAYS_MAX}d")
    site = parse_site(site_files(files), site_constants(files, access.constants))
    answer = client.ask(calls.entities())
    present = present_of(
        answer.entities, answer.revision, client.ask(ApiCall("GET", "/metrics", str)), site.modules
    )
    rehearsal = Rehearsal(
        _changes(site, present, Claim.TAKE if take else Claim.LEAVE),
        [parse_fault(one) for one in faults],
        [parse_invariant(one) for one in invariants],
        horizon_ms / 1_000,
    )
    played = [*_played(present, rehearsal, range(seed, seed + runs))]
    summary = summed_up(
        played, present.revision, rehearsal.horizon_s, present.pace.usual_ns, present.missing
    )
    if Format(output).for_people:
        print_rehearsed(summary)
    else:
        print_data(summary, output)
    if not summary.is_good:
        ctx.exit(NOT_CONVERGED)


def _changes(site: Site, present: Present, claim: Claim) -> list[Change]:
    """The changes of the site, as far as they concern what a rehearsal knows."""
    return [
        one
        for one in changes(site, present.entities, claim)
        if not isinstance(one, OpenIntent | CloseIntent)
        and one.entity.kind in KINDS
        and one.entity.kind != module.kind.name
    ]


def _played(present: Present, rehearsal: Rehearsal, seeds: Sequence[int]) -> Iterator[RehearsalRun]:
    for number, seed in enumerate(seeds, start=1):
        yield play(present, rehearsal, seed, partial(_show, f"run {number} of {len(seeds)}"))
    _show("", None)


def _show(run: str, passed_s: float | None) -> None:
    """Say on a terminal how far a run is; None: leave the line empty."""
    if is_terminal() and sys.stderr.isatty():
        at = "" if passed_s is None else f", after {duration(int(passed_s) * 1_000)}"
        say(f"\r{run + at:<40}\r", err=True, nl=False)
