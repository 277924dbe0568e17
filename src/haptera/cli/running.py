"""`haptera serve`, `agent` and `lab`: the long-running processes; what they do is elsewhere."""

import importlib
from pathlib import Path

import click

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)
_dir_option = click.option(
    "--dir", "directory", type=_FOLDER, default=Path(), help="Where .haptera/ with all state is."
)
_listen_option = click.option(
    "--listen", metavar="ADDRESS", help="Where to serve the API: ADDRESS or ADDRESS:PORT."
)


@click.command()
@_dir_option
@click.option("--site", type=_FILE, help="A site file to apply at the start.")
@_listen_option
def serve(directory: Path, site: Path | None, listen: str | None) -> int:
    """Run a parent: the engine, its store and its API."""
    code: int = importlib.import_module("haptera.daemon").serve(
        directory=directory, site=site, listen=listen
    )
    return code


@click.command()
@_dir_option
def agent(directory: Path) -> int:
    """Run a node's agent."""
    code: int = importlib.import_module("haptera.daemon").agent(directory=directory)
    return code


@click.command()
@_dir_option
@click.option("--site", type=_FILE, required=True, help="The site file to make so.")
@_listen_option
@click.option("--once", is_flag=True, help="Converge, break things, see them heal, exit.")
def lab(directory: Path, site: Path, listen: str | None, once: bool) -> int:
    """Run a virtual cluster on this machine: a parent, and a process tree for each node."""
    code: int = importlib.import_module("haptera.lab.main").run(
        directory=directory, site=site, listen=listen, once=once
    )
    return code
