"""`haptera agent`: a node's agent."""

import os
from pathlib import Path
from typing import BinaryIO

import click

from haptera.cli.verb import unwatched
from haptera.client import calls, find
from haptera.client.bare import ask_bare

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@unwatched("it runs until it is stopped; `haptera status --watch` shows the cluster")
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
@click.option(
    "--from",
    "client_file",
    metavar="CLIENT_FILE",
    type=click.Path(path_type=Path),
    help="Instead: ask this parent for an invitation, where there is no session.",
)
@click.option("--node", help="With --from: the name of this node.")
@click.option("--respawn", is_flag=True, help="Start another one whenever it ends.")
def agent(
    directory: Path,
    address: str,
    invitation: BinaryIO | None,
    client_file: Path | None,
    node: str | None,
    *,
    respawn: bool,
) -> int:
    r"""Run a node's agent.

    \b
    Examples:
      haptera agent --address 10.0.0.7 --invitation - < invitation.json
      haptera agent --address 10.0.0.7 --from /etc/haptera/agent.json --node n7
      haptera agent --dir /run/haptera --address 10.0.0.7
    """
    if (client_file is None) != (node is None) or (client_file and invitation):
        raise click.UsageError("--from needs --node, and no --invitation")
    from haptera.daemon import agent as daemon

    settings = daemon.AgentSettings(os.fspath(directory), address)
    run = daemon.respawn_and_run if respawn else daemon.run
    if node is not None:
        # Each time: it has a session for as long as its machine is up, and is asked then.
        run(settings, lambda: daemon.parse_invitation(asked(client_file, node)))
    elif invitation is not None:
        given = daemon.parse_invitation(invitation.read())
        run(settings, lambda: given)
    else:
        run(settings, None)
    return 0


def asked(client_file: Path | None, node: str) -> bytes:
    """The invitation that the parent of a client file answers with."""
    import msgspec

    made = ask_bare(calls.invite(node, why="its agent starts"), find(client_file).access)
    return msgspec.json.encode(made)
