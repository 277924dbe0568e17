"""The options of each rehearsal, and what they mean."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from haptera.cli.output.printing import output_option
from haptera.model.changes import Change
from haptera.model.errors import LimitError
from haptera.model.walltime import parse_duration_ms
from haptera.rehearsal.faults import FAULTS, parse_fault
from haptera.rehearsal.invariants import parse_invariant
from haptera.rehearsal.rehearse import DAYS_MAX, Rehearsal

RUNS: Final = 5
RUNS_MAX: Final = 1_000
_DAY_MS: Final = 86_400_000
runs_option: Final = click.option(
    "--runs", metavar="N", type=click.IntRange(1, RUNS_MAX), default=RUNS, show_default=True
)
seed_option: Final = click.option(
    "--seed", metavar="N", type=int, default=1, show_default=True, help="Of the first run."
)
_OPTIONS: Final = (
    runs_option,
    seed_option,
    click.option("--within", metavar="TIME", default="1d", show_default=True, help="The horizon."),
    click.option(
        "--fault",
        "faults",
        metavar="TEXT",
        multiple=True,
        help=f"'NODES: WHAT at TIME for TIME': {', '.join(FAULTS)}.",
    ),
    click.option(
        "--hold",
        "invariants",
        metavar="TEXT",
        multiple=True,
        help="'always: count(SELECTOR) <= N' or 'never: count(SELECTOR) below N%'.",
    ),
    click.option(
        "--from",
        "backup",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="A backup to rehearse on, without its parent; default: the cluster as it is.",
    ),
    click.option(
        "--find",
        "finds",
        is_flag=True,
        help="Search, with a seed a run, for faults that break a condition of --hold.",
    ),
    click.option(
        "--timeline",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write the first run to this file as a picture (SVG).",
    ),
    output_option,
)


@dataclass(frozen=True)
class RehearsalOptions:
    """The options of a rehearsal: runs, seeds, faults, conditions, and the copy's source."""

    runs: int
    seed: int
    within: str
    faults: Sequence[str]
    invariants: Sequence[str]
    output: str
    backup: Path | None
    finds: bool
    timeline: Path | None

    @property
    def seeds(self) -> range:
        """The seeds of its runs."""
        return range(self.seed, self.seed + self.runs)

    def rehearsal(self, changes: Sequence[Change]) -> Rehearsal:
        """The script of these changes.

        Raises:
            HapteraError: a fault, a condition or the horizon is none.
        """
        horizon_ms = parse_duration_ms(self.within)
        if not 0 < horizon_ms <= DAYS_MAX * _DAY_MS:
            what, do = f"{self.within} is no horizon", f"up to {DAYS_MAX}d"
            raise LimitError(what, where="--within", do=do)
        return Rehearsal(
            changes,
            [*map(parse_fault, self.faults)],
            [*map(parse_invariant, self.invariants)],
            horizon_ms / 1_000,
        )


def rehearsal_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what each rehearsal may be asked with."""
    for one in reversed(_OPTIONS):
        command = one(command)
    return command


def taken_from(options: dict[str, Any]) -> RehearsalOptions:
    """The options of a rehearsal, removed from all options."""
    return RehearsalOptions(
        **{name: options.pop(name) for name in RehearsalOptions.__dataclass_fields__}
    )
