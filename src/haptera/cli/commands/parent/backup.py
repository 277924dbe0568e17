"""`haptera backup`: a parent's state kept in one file."""

from pathlib import Path

import click

from haptera.cli.input.directory import dir_option
from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@unwatched("it runs once")
@click.argument("file", type=FILE)
@dir_option
def backup(file: Path, directory: Path) -> None:
    r"""Write a parent's state to FILE, and verify it; the parent may be running.

    The backup holds desired state, intents, tokens, secrets and the keys of the cluster's
    authority: protect it as you protect these. It does not hold the event history (`haptera history
    --all`).

    \b
    Examples:
      haptera backup --dir /srv/cluster /backup/cluster-monday.tar.gz
      haptera backup state.tar.gz
    """
    from haptera.daemon.parent.backup import back_up
    from haptera.runtime import clock

    told = back_up(directory, file, clock.wall_s())
    say(f"{file}: revision {told.revision}, {file.stat().st_size} bytes")
