"""`haptera restore`: a parent's state had back from a backup."""

from pathlib import Path

import click

from haptera.cli.commands.backup import FILE, dir_option


@click.command()
@click.argument("file", type=FILE)
@dir_option
def restore(file: Path, directory: Path) -> None:
    r"""Make a parent's state of FILE where there is none, to be served by `haptera serve`.

    What was desired after the backup is lost; apply the site's files again. Never serve both the
    old state and the restored one: nodes would obey whichever they hear.

    \b
    Examples:
      haptera restore --dir /srv/cluster /backup/cluster-monday.tar.gz
      haptera restore state.tar.gz
    """
    from haptera.daemon.backup import restore as restored

    told = restored(file, directory)
    click.echo(f"{directory}: revision {told.revision}, as haptera {told.haptera} kept it")
    click.echo("start it: haptera serve --dir DIR", err=True)
