"""`haptera module`: for those who write modules."""

from typing import Final

import click

from haptera.cli.lazy import Lazy

_COMMANDS: Final = {
    "new": "haptera.cli.commands.module.new:new",
    "lint": "haptera.cli.commands.module.lint:lint_modules",
    "list": "haptera.cli.commands.module.list:list_modules",
    "check": "haptera.cli.commands.module.check:check",
    "test": "haptera.cli.commands.module.test:test_declared",
    "reload": "haptera.cli.commands.module.reload:reload",
}


@click.group(cls=Lazy, places=_COMMANDS)
def module() -> None:
    """Write, check and list modules."""
