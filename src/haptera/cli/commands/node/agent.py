"""`haptera agent`: a node's agent."""

import os
from pathlib import Path
from typing import BinaryIO

import click

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option(
    "--dir",
    "directory",
    type=_FOLDER,
    default=Path("/run/haptera"),
    show_default=True,
    help="The run directory.",
)
@click.option("--address", required=True, help="The node's own address.")
@click.option(
    "--invitation",
    type=click.File("rb"),
    help="The invitation from the boot, as JSON (- for standard input).",
)
@click.option("--respawn", is_flag=True, help="Start another one whenever it ends.")
def agent(directory: Path, address: str, invitation: BinaryIO | None, *, respawn: bool) -> int:
    r"""Run a node's agent.

    \b
    Examples:
      haptera agent --address 10.0.0.7 --invitation - < invitation.json
      haptera agent --dir /run/haptera --address 10.0.0.7
    """
    from haptera.daemon import agent as daemon

    given = None if invitation is None else daemon.parse_invitation(invitation.read())
    run = daemon.respawn_and_run if respawn else daemon.run
    run(daemon.AgentSettings(os.fspath(directory), address), given)
    return 0
