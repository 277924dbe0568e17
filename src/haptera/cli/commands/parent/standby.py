"""`haptera standby`: a process that follows a parent."""

from pathlib import Path

import click

from haptera.cli.commands.parent.serve import etcd_option
from haptera.cli.main import the_access
from haptera.cli.verb import unwatched

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@unwatched("it runs until it is stopped; `haptera status --watch` shows the cluster")
@click.option(
    "--dir",
    "directory",
    type=_FOLDER,
    required=True,
    help="The directory that holds its own .haptera/.",
)
@click.option(
    "--listen", metavar="ADDRESS", required=True, help="As in `haptera serve`, once promoted."
)
@click.option(
    "--hello",
    "hello_s",
    type=click.FloatRange(0.1, 60),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="As in `haptera serve`, once promoted.",
)
@etcd_option
@click.pass_context
def standby(
    ctx: click.Context, directory: Path, listen: str, hello_s: float, etcd: tuple[Path, ...]
) -> int:
    r"""Follow a parent's store, and take over as parent when promoted.

    With --etcd it promotes itself once the parent's lease in etcd has run out.

    The client file names the parent, with a token of scope admin.

    \b
    Examples:
      haptera --client primary.json standby --dir /srv/standby --listen 127.0.0.2
      haptera standby --dir standby --listen 127.0.0.2 --hello 1
      haptera standby --dir standby --listen 127.0.0.2 --etcd etcd.json
    """
    from haptera.daemon.parent.serve import serve
    from haptera.daemon.settings import check_address
    from haptera.daemon.tree.standby import Standby

    check_address(listen)
    endpoints = tuple(str(one.resolve()) for one in etcd)
    Standby(directory, the_access(ctx), listen, endpoints).follow()
    serve(directory, None, listen, hello_ms=round(hello_s * 1000), etcd=endpoints)
    return 0
