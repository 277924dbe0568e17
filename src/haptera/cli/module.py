"""`haptera module`: for those who write modules."""

from typing import Final

import click

from haptera.cli.lazy import Lazy

_COMMANDS: Final = {
    "new": "haptera.cli.creating:new",
    "lint": "haptera.cli.linting:lint_modules",
    "list": "haptera.cli.modules:list_modules",
    "check": "haptera.cli.checking:check",
}


@click.group(cls=Lazy, places=_COMMANDS)
def module() -> None:
    """What an author of modules needs."""
