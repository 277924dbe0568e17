"""`haptera serve`: a parent, and the options that a lab has too."""

import gc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from haptera.cli.input.directory import dir_option
from haptera.cli.verb import unwatched
from haptera.model.answers.plan import RADIUS_PERCENT

Command = TypeVar("Command", bound=Callable[..., Any])

_SITE = click.Path(path_type=Path)


_hello_option = click.option(
    "--hello",
    "hello_s",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 60),
    default=5,
    show_default=True,
    help="The heartbeat interval between parent and nodes (H).",
)


# The disk space for measurements, in MiB: the default, the least and the most.
SAMPLES_MIB: Final = 2_048
SAMPLES_MIB_MIN: Final = 16
SAMPLES_MIB_MAX: Final = 1 << 20

etcd_option = click.option(
    "--etcd",
    multiple=True,
    metavar="ETCD_FILE",
    type=click.Path(path_type=Path),
    help="Endpoints of etcd: act only while holding the parent's lease there.",
)


def radius_option(default: int) -> Callable[[Command], Command]:
    """The setting of how much may be disrupted unasked."""
    return click.option(
        "--blast-radius",
        "radius_percent",
        metavar="PERCENT",
        type=click.IntRange(0, 100),
        default=default,
        show_default=True,
        help="A plan that may disrupt a larger share of the nodes needs its digest.",
    )


@click.command()
@unwatched("it runs until it is stopped; `haptera status --watch` shows the cluster")
@dir_option
@click.option(
    "--site",
    type=_SITE,
    help="A site file or a folder of them to apply; the first start needs one.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="The address that nodes use, and that serves the API.",
)
@click.option(
    "--api",
    metavar="ADDRESS",
    help="Serve the API at another address; all but 127.x.y.z use TLS.",
)
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A host name of the API.")
@click.option(
    "--socket",
    metavar="PATH",
    show_default=".haptera/api.sock",
    help="A Unix socket for the API: for root, its own user, and --let-in.",
)
@click.option(
    "--let-in",
    multiple=True,
    metavar="RULE",
    help="Who else may use the socket: eve=read, @ops=write, eve=write:rack1n*.",
)
@click.option(
    "--keep-user",
    metavar="MODULE",
    multiple=True,
    help="A module that runs as the parent's user, not as one of its own.",
)
@_hello_option
@click.option("--name", help="For a parent below another: its name in `parents` of nodes.")
@click.option(
    "--above",
    multiple=True,
    metavar="CLIENT_FILE",
    type=click.Path(path_type=Path),
    help="Client files of the parent above and its standby, scope admin.",
)
@etcd_option
@radius_option(RADIUS_PERCENT)
@click.option(
    "--samples-mib",
    metavar="MIB",
    type=click.IntRange(SAMPLES_MIB_MIN, SAMPLES_MIB_MAX),
    default=SAMPLES_MIB,
    show_default=True,
    help="How much disk space the numbers of machines may take.",
)
def serve(  # noqa: PLR0913 (an argument for each option)
    directory: Path,
    site: Path | None,
    listen: str,
    *,
    api: str | None,
    hosts: tuple[str, ...],
    socket: str | None,
    let_in: tuple[str, ...],
    keep_user: tuple[str, ...],
    hello_s: float,
    name: str | None,
    above: tuple[Path, ...],
    etcd: tuple[Path, ...],
    radius_percent: int,
    samples_mib: int,
) -> int:
    r"""Run a parent: the engine, its store and its API.

    \b
    Examples:
      haptera serve --dir /srv/cluster --site site.yaml
      haptera serve --dir /srv/cluster --listen 127.0.0.2
      haptera serve --dir /srv/m1 --listen 127.0.0.3 --name m1 --above root.json
    """
    if (name is None) == bool(above) or (above and site):
        raise click.UsageError("a parent below others has --name and --above, and no --site")
    # Until it serves: nearly all that it makes by then stays, and to look for the rest takes long.
    gc.disable()
    from haptera.runtime.processes.forking import exec_zygote

    # While this imports what a parent is, that imports what its modules need.
    with closing(exec_zygote()) as zygote:
        from haptera.daemon.parent.serve import BelowArguments
        from haptera.daemon.parent.serve import serve as run
        from haptera.daemon.settings import Ways

        below = None if name is None else BelowArguments(name, _places(above))
        ways, hello_ms = Ways(api, hosts, socket, let_in), round(hello_s * 1000)
        etcds = _places(etcd)
        samples = samples_mib << 20
        terms = (ways, radius_percent, hello_ms, keep_user, below, etcds, samples)
        run(directory, site, listen, *terms, zygote)
    return 0


def _places(files: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(str(one.resolve()) for one in files)
