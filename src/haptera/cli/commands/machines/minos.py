"""`haptera minos`: builds what machines boot from the network, and tells what is inside."""

from pathlib import Path
from typing import Final

import click

from haptera.cli.input.directory import dir_option
from haptera.cli.output.printing import Format, output_option, print_data
from haptera.cli.output.tables import print_table
from haptera.minos.build import DRIVERS, Inside, build, read

# Beside a parent's state, where the module netboot looks for it.
_FOLDER: Final = Path(".haptera") / "parent" / "minos"
_MB: Final = 1_000_000

_to_option = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory of the minOS; default: below --dir.",
)


@click.group()
def minos() -> None:
    """Build the small system that machines boot: a kernel and haptera's agent."""


@minos.command("build")
@dir_option
@_to_option
@click.option(
    "--driver",
    "drivers",
    multiple=True,
    metavar="NAME",
    help=f"A driver to load; those of the default: {', '.join(DRIVERS)}.",
)
@click.option("--kernel", metavar="VERSION", help="An installed kernel; else the newest.")
@output_option
def build_it(
    directory: Path, folder: Path | None, drivers: tuple[str, ...], kernel: str | None, output: str
) -> None:
    r"""Build a minOS from the distribution's packages and this haptera.

    The build is reproducible. Missing packages are listed with the apt command to install them.

    \b
    Examples:
      haptera minos build
      haptera minos build --driver virtio_net --driver virtio_pci
      haptera minos build --folder /srv/minos
    """
    place = folder or directory / _FOLDER
    _print(build(place, drivers or DRIVERS, kernel), place, output)


@minos.command("show")
@dir_option
@_to_option
@output_option
def show(directory: Path, folder: Path | None, output: str) -> None:
    r"""Show what a minOS contains, and why.

    \b
    Examples:
      haptera minos show
      haptera minos show -o json
    """
    place = folder or directory / _FOLDER
    _print(read(place), place, output)


def _print(inside: Inside, place: Path, output: str) -> None:
    if not Format(output).for_people:
        print_data(inside, output)
        return
    click.echo(f"{place}: {inside.size_bytes / _MB:.1f} MB initramfs, kernel {inside.kernel}")
    click.echo(f"Python {inside.python}; drivers {', '.join(inside.drivers)}")
    rows = [(one.why, str(one.files), f"{one.size_bytes / _MB:.1f} MB") for one in inside.parts]
    print_table(("what", "files", "unpacked"), rows, output)
