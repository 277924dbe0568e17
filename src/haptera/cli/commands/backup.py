"""`haptera backup`: a parent's state kept in one file."""

from pathlib import Path

import click

FILE = click.Path(dir_okay=False, path_type=Path)
dir_option = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default="here",
    help="Where the parent's .haptera/ is.",
)


@click.command()
@click.argument("file", type=FILE)
@dir_option
def backup(file: Path, directory: Path) -> None:
    r"""Write a parent's state into FILE, checked; the parent may run meanwhile.

    It holds what is desired, intents, tokens, secrets and the keys of the cluster's authority: keep
    it as safe as these. The past (`haptera history --all`) is not in it.

    \b
    Examples:
      haptera backup --dir /srv/cluster /backup/cluster-monday.tar.gz
      haptera backup state.tar.gz
    """
    from haptera.daemon.backup import back_up
    from haptera.runtime import clock

    told = back_up(directory, file, clock.wall_s())
    click.echo(f"{file}: revision {told.revision}, {file.stat().st_size} bytes")
