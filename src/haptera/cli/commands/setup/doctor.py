"""`haptera doctor`: what is wrong with the installation of a parent, and what mends it."""

from pathlib import Path
from typing import Final

import click
import msgspec

from haptera.cli.commands.setup.ailments import Ailment
from haptera.cli.commands.setup.files import etc_option
from haptera.cli.main import OK, REFUSED
from haptera.cli.output.printing import Format, output_option, print_data, say
from haptera.cli.verb import answers, unwatched

STATE: Final = Path("/var/lib/haptera")


@click.command()
@answers(list[Ailment])
@unwatched("it runs once")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=STATE,
    show_default=True,
    help="The directory that holds the parent's .haptera/.",
)
@etc_option
@output_option
def doctor(directory: Path, etc: Path, output: str) -> int:
    r"""Say what is wrong with this installation of a parent, each with what mends it.

    It looks at the address and its ports, the clock, the disk, versions, permissions, certificates,
    and how modules and secrets are protected. It changes nothing. Run it as root.

    \b
    Examples:
      haptera doctor
      haptera doctor --dir /srv/cluster -o json

    Exit codes: 0 nothing grave, 1 something does not work, 2 wrong usage.
    """
    from haptera.cli.commands.setup.ailments import ailments
    from haptera.cli.commands.setup.machine import listened, look

    found = ailments(look(directory, listened(etc / "parent.env")))
    if Format(output).for_people:
        for one in found:
            say(f"{'error' if one.grave else 'warning'}: {one.what}", fg=_COLOURS[one.grave])
            say(f"  {one.do}")
        say("nothing is wrong" if not found else f"{len(found)} found")
    else:
        print_data(msgspec.to_builtins(found), output)
    return REFUSED if any(one.grave for one in found) else OK


_COLOURS: Final = {True: "red", False: "yellow"}
