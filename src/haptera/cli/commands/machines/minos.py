"""`haptera minos`: builds what machines boot from the network, and tells what is inside."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from haptera.cli.input.directory import dir_option
from haptera.cli.lazy import Words
from haptera.cli.output.printing import Format, output_option, print_data, say
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.minos.build import DRIVERS, LEVELS, Inside, build, read
from haptera.minos.ssh import read_keys
from haptera.model.entity import check_name

# Beside a parent's state, where the module netboot looks for it.
_FOLDER: Final = Path(".haptera") / "parent" / "minos"
_MB: Final = 1_000_000


def _checked(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    return None if name is None else check_name(name)


_to_option = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory of the minOS; default: below --dir.",
)
_name_option = click.option(
    "--name",
    callback=_checked,
    metavar="NAME",
    help="A subfolder of it, for nodes that desire this minos.",
)


def _in_place(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the directory of its minOS, `place`, from the options that say it."""

    @dir_option
    @_to_option
    @_name_option
    @functools.wraps(command)
    def asked(directory: Path, folder: Path | None, name: str | None, **others: Any) -> None:
        command(place=(folder or directory / _FOLDER) / (name or ""), **others)

    return asked


@click.group(cls=Words)
def minos() -> None:
    """Build the small system that machines boot: a kernel and haptera's agent."""


@minos.command("build")
@answers(Inside)
@unwatched("it runs once")
@_in_place
@click.option(
    "--driver",
    "drivers",
    multiple=True,
    metavar="NAME",
    help=f"A driver to load, or `servers` for many cards; by default: {', '.join(DRIVERS)}.",
)
@click.option(
    "--program",
    "programs",
    multiple=True,
    metavar="NAME",
    help="A program of this machine to add, by name or path; systems need runc.",
)
@click.option("--kernel", metavar="VERSION", help="An installed kernel; else the newest.")
@click.option(
    "--ssh-keys",
    type=click.Path(path_type=Path),
    help="Put an SSH server in, which lets root in by the public keys in this file.",
)
@click.option(
    "--level",
    type=click.IntRange(*LEVELS),
    metavar="N",
    default=LEVELS[1],
    show_default=True,
    help="How strongly it is compressed; a low level builds faster.",
)
@output_option
def build_it(
    place: Path,
    drivers: tuple[str, ...],
    programs: tuple[str, ...],
    kernel: str | None,
    ssh_keys: Path | None,
    level: int,
    output: str,
) -> None:
    r"""Build a minOS from the distribution's packages and this haptera.

    The build is reproducible. Missing packages are listed with the apt command to install them.

    \b
    Examples:
      haptera minos build
      haptera minos build --driver servers
      haptera minos build --driver virtio_net --driver virtio_pci
      haptera minos build --name 2026-11 --program runc
      haptera minos build --folder /srv/minos
      haptera minos build --ssh-keys ~/.ssh/id_ed25519.pub
    """
    keys = [] if ssh_keys is None else read_keys(ssh_keys)
    inside = build(place, drivers or DRIVERS, kernel, programs, ssh_keys=keys, level=level)
    _print(inside, place, output)


@minos.command("show")
@answers(Inside)
@unwatched("it reads local files, for which there are no events: run it again")
@_in_place
@output_option
def show(place: Path, output: str) -> None:
    r"""Show what a minOS contains, and why.

    \b
    Examples:
      haptera minos show
      haptera minos show -o json
    """
    _print(read(place), place, output)


def _print(inside: Inside, place: Path, output: str) -> None:
    if not Format(output).for_people:
        print_data(inside, output)
        return
    say(f"{place}: {inside.size_bytes / _MB:.1f} MB initramfs, kernel {inside.kernel}")
    say(f"Python {inside.python}; drivers {', '.join(inside.drivers)}")
    if inside.ssh:
        say(f"SSH for root, with {', '.join(inside.ssh)}")
    rows = [(one.why, str(one.files), f"{one.size_bytes / _MB:.1f} MB") for one in inside.parts]
    print_table(("what", "files", "unpacked"), rows, output)
