"""Copies of the cluster that verbs rehearse on, and the runs that are played on them."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from haptera.cli.input.rehearsing import RUNS
from haptera.cli.input.rolls import roll_body
from haptera.cli.input.sites import site_constants, site_files
from haptera.cli.main import client_of, the_access, the_client
from haptera.cli.output.printing import is_terminal, say
from haptera.client import Client, calls
from haptera.client.call import call
from haptera.controllers.roll.beginning import Patches, beginning, to_be_changed
from haptera.controllers.roll.timeline import RollBegun
from haptera.core.desired.ownership import Claim, desire
from haptera.kinds import KINDS, module, roll
from haptera.model.changes import Change, CloseIntent, Declare, OpenIntent
from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError
from haptera.model.walltime import duration
from haptera.rehearsal.present import (
    Additions,
    Present,
    present_of,
    present_of_past,
    present_of_stored,
)
from haptera.rehearsal.rehearse import Rehearsal, RehearsalRun, meant_in
from haptera.rehearsal.rehearse import rehearse as play
from haptera.rehearsal.summary import RehearsalSummary, summed_up
from haptera.rest import endpoints
from haptera.rest.jobs import JobView
from haptera.runtime.clock import wall_s
from haptera.site.apply.changes import changes
from haptera.site.model.site import Site, parse_site


def rehearsed_apply(ctx: click.Context, files: Sequence[str], claim: Claim) -> RehearsalSummary:
    """The rehearsal of a site's files as they would be applied now, as often as by default.

    Raises:
        HapteraError: the change would be refused.
    """
    access = the_access(ctx)
    site = parse_site(site_files(files), site_constants(files, access.constants))
    present = copied(client_of(ctx, access), Additions(site.modules, site.controllers))
    return _by_default(present, Rehearsal(site_changes(site, present, claim)))


def rehearsed_roll(
    ctx: click.Context, selector: str, options: Mapping[str, Any]
) -> RehearsalSummary:
    """The rehearsal of a roll as it would begin now, as often as by default.

    Raises:
        HapteraError: it would not begin.
    """
    present, changed = roll_script(ctx, selector, options, None)
    return _by_default(present, Rehearsal(changed))


def check_rehearsed(summary: RehearsalSummary, command: str) -> None:
    """See that a rehearsal ended well; `command` shows more of it.

    Raises:
        HapteraError: it did not.
    """
    if not summary.is_good:
        left = "".join(f"; {one.entity}: {one.why}" for one in summary.left[:1])
        what = f"its rehearsal was done in {summary.settled} of {summary.runs} runs{left}"
        raise HapteraError(what, do=f"see {command}, or leave out --rehearsed")


def roll_script(
    ctx: click.Context, selector: str, options: Mapping[str, Any], backup: Path | None
) -> tuple[Present, list[Change]]:
    """A copy of the cluster, and the changes that begin a roll there."""
    if backup is None:
        client = the_client(ctx)
        present, known = copied(client), client.ask(calls.entities(selector)).entities
        owner, claim = f"user:{client.ask(calls.caller()).name}", Claim.LEAVE
    else:
        present = copied_backup(backup)
        # Who asks, only a parent knows.
        known, owner, claim = meant_in(present, selector), "user:rehearsal", Claim.TAKE
    if options["take"]:
        claim = Claim.TAKE
    if roll.kind.name not in {one.name for one, _ in present.controllers}:
        do = "add `controllers: {roll: {}}` to its site file, and start it again"
        raise HapteraError("no controller of rolls runs at this parent", do=do)
    body = roll_body(selector, options)
    patches = beginning(body, to_be_changed(body, known), present.wall_s)
    return present, [*_patched(present, patches, owner, claim)]


def copied(client: Client, besides: Additions | None = None) -> Present:
    """The cluster as it is now, by what the parent says of it."""
    answer = client.ask(calls.entities())
    return present_of(answer, wall_s(), *_measured(client), besides)


def copied_past(client: Client, start: RollBegun, owner: str) -> Present:
    """The cluster as it was before a roll of this owner, by the history; measures are today's."""
    then = client.ask(calls.past(int(start.at_s))).entities
    modules = client.ask(calls.entities(f"{module.kind.name}:*")).entities
    names = [one.name for one in modules]
    return present_of_past(then, start.revision, start.at_s, owner, names, *_measured(client))


def _measured(client: Client) -> tuple[str, list[JobView]]:
    return client.ask(call(endpoints.METRICS)), client.ask(calls.jobs()).jobs


def copied_backup(file: Path, besides: Additions | None = None) -> Present:
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


def site_changes(site: Site, present: Present, claim: Claim) -> list[Change]:
    """The changes of the site, as far as they concern what a rehearsal knows."""
    return [
        one
        for one in changes(site, present.entities, claim)
        if not isinstance(one, OpenIntent | CloseIntent)
        and one.entity.kind in KINDS
        and one.entity.kind != module.kind.name
    ]


def _by_default(present: Present, rehearsal: Rehearsal) -> RehearsalSummary:
    runs = [*played_runs(present, rehearsal, range(1, 1 + RUNS))]
    return summarized(present, rehearsal, runs)


def summarized(
    present: Present, rehearsal: Rehearsal, runs: Sequence[RehearsalRun]
) -> RehearsalSummary:
    """The answer of some runs on a copy; at least one."""
    measured = present.pace.usual_ns
    return summed_up(
        *(runs, present.revision, rehearsal.horizon_s, measured, present.missing),
        assumed=present.is_assumed,
    )


def played_runs(
    present: Present, rehearsal: Rehearsal, seeds: Sequence[int]
) -> Iterator[RehearsalRun]:
    """Play a rehearsal with each seed, and show on a terminal how far it is."""
    for number, seed in enumerate(seeds, start=1):
        yield play(present, rehearsal, seed, partial(_show, f"run {number} of {len(seeds)}"))
    _show("", None)


def show_tried(number: int) -> None:
    """Show on a terminal the number of the history that is tried."""
    _show(f"history {number}", None)


def _show(run: str, passed_s: float | None) -> None:
    """Say on a terminal how far a run is; None: leave the line empty."""
    if is_terminal() and sys.stderr.isatty():
        at = "" if passed_s is None else f", after {duration(int(passed_s) * 1_000)}"
        say(f"\r{run + at:<40}\r", err=True, nl=False)
