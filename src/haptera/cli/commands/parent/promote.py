"""`haptera promote`: a standby made the parent."""

from pathlib import Path

import click

from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@unwatched("it runs once; `haptera status --watch` shows the result")
@click.option(
    "--dir", "directory", type=_FOLDER, required=True, help="The directory of the standby."
)
@click.option("--anyway", is_flag=True, help="Promote it even if the primary still answers.")
def promote(directory: Path, anyway: bool) -> int:
    r"""Promote a standby to parent; the old parent must not come back.

    \b
    Examples:
      haptera promote --dir /srv/standby
      haptera promote --dir /srv/standby --anyway
    """
    from haptera.daemon.tree.standby import PromoteOrder
    from haptera.daemon.tree.standby import promote as order

    done = order(directory, PromoteOrder(anyway))
    lag = "an unknown number of" if done.lag is None else str(done.lag)
    say(f"promoted at revision {done.revision}; lacks {lag} commits of its primary")
    return 0
