"""`haptera serve`: a parent of this directory's cluster, from its site file or as it was before."""

from dataclasses import dataclass
from pathlib import Path

from haptera.daemon.cluster import ClusterIdentity, read_cluster
from haptera.daemon.parent.parent import run
from haptera.daemon.settings import (
    HELLO_MS,
    SAMPLES,
    WAYS,
    ParentSettings,
    Ways,
    check_address,
    home_of,
)
from haptera.daemon.tree.above import join
from haptera.model.answers.plan import RADIUS_PERCENT
from haptera.model.errors import UnreadableError
from haptera.runtime.identity.private import private_directory
from haptera.runtime.processes.forking import ZygoteClient
from haptera.runtime.samples.limits import SampleLimits
from haptera.site.model.site import load_site
from haptera.site.syntax.sources import constants_of


@dataclass(frozen=True, slots=True)
class BelowArguments:
    """A parent below others: what nodes' lists call it, and client files of those above."""

    name: str
    above: tuple[str, ...]


def serve(  # noqa: PLR0913 (an argument for each option)
    directory: Path,
    site: Path | None,
    address: str,
    ways: Ways = WAYS,
    radius_percent: int = RADIUS_PERCENT,
    hello_ms: int = HELLO_MS,
    keep_user: tuple[str, ...] = (),
    below: BelowArguments | None = None,
    etcd: tuple[str, ...] = (),
    samples_bytes: int = SAMPLES.bytes_max,
    zygote: ZygoteClient | None = None,
) -> None:
    """Run a parent with its state below `directory`, until interrupted or terminated.

    Raises:
        HapteraError: it cannot be reached there, or its site file is wrong…; see `run`.
    """
    check_address(address)
    if below is not None:
        join(home_of(directory), below.above)
    cluster = _cluster(directory.resolve() / ".haptera" / "parent", site)
    root = private_directory(private_directory(directory.resolve() / ".haptera") / "parent").parent
    run(
        ParentSettings(
            str(root / "parent"),
            address,
            str(root / "client.json"),
            cluster.name,
            modules=cluster.modules,
            controllers=cluster.controllers if below is None else (),
            own=cluster.own,
            site=None if site is None else str(site),
            ways=ways,
            radius_percent=radius_percent,
            hello_ms=hello_ms,
            keep_user=keep_user,
            parent_name=None if below is None else below.name,
            above=() if below is None else below.above,
            etcd=etcd,
            samples=SampleLimits(samples_bytes),
        ),
        zygote,
    )


def _cluster(home: Path, site: Path | None) -> ClusterIdentity:
    """The cluster of the site file, or else the one that was served here before."""
    if site is not None:
        wanted = load_site(site, constants_of(site))
        return ClusterIdentity(wanted.cluster, wanted.modules, wanted.controllers, wanted.own)
    known = read_cluster(home)
    if known is None:
        raise UnreadableError(
            "no cluster was served here yet",
            where=str(home),
            do="name a site file with --site, or another directory with --dir",
        )
    return known
