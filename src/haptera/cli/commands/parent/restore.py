"""`haptera restore`: a parent's state had back from a backup."""

import shlex
from pathlib import Path

import click

from haptera.cli.commands.parent.backup import FILE
from haptera.cli.input.directory import dir_option
from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched


@click.command()
@unwatched("it runs once")
@click.argument("file", type=FILE)
@dir_option
def restore(file: Path, directory: Path) -> None:
    r"""Restore a parent's state from FILE into a directory without one.

    Changes after the backup are lost; apply the site's files again. Never run both the old parent
    and the restored one: nodes would obey either.

    \b
    Examples:
      haptera restore --dir /srv/cluster /backup/cluster-monday.tar.gz
      haptera restore state.tar.gz
    """
    from haptera.daemon.parent.backup import restore as restored

    told = restored(file, directory)
    say(f"{directory}: revision {told.revision}, as haptera {told.haptera} kept it")
    say(f"start it: haptera serve --dir {shlex.quote(str(directory))}", err=True)
