"""`haptera debug`: for those who look for a fault in haptera itself."""

from typing import Final

import click

from haptera.cli.lazy import Lazy

_COMMANDS: Final = {"story": "haptera.cli.commands.debug.story:story"}


@click.group(cls=Lazy, places=_COMMANDS)
def debug() -> None:
    """Show how haptera comes to its decisions."""
