"""`haptera setup`: this machine as a parent, or as a node."""

from typing import Final

import click

from haptera.cli.lazy import Lazy

_PLACES: Final = {
    "parent": "haptera.cli.commands.setup.parent:parent",
    "agent": "haptera.cli.commands.setup.agent:agent",
}


@click.group(cls=Lazy, places=_PLACES)
def setup() -> None:
    """Set up this machine as a parent, or as a node."""
