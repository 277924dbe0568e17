"""The modules and controllers that a parent was started with: what they declare and may reach."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from haptera.daemon.cluster import ClusterIdentity, keep_cluster, read_cluster
from haptera.daemon.confining import Grounds, confinement_told, confinements, grounds_of_parent
from haptera.daemon.logs import Logs
from haptera.daemon.parts import catalog_of, codec_of
from haptera.daemon.settings import ParentSettings
from haptera.model.parts import Context
from haptera.runtime.processes.confinement.confinement import Confine
from haptera.runtime.processes.forking import LoopZygote
from haptera.runtime.processes.own_modules import OwnModule, describe

# Which modules record consoles.
CONSOLES_BY: Final = ("ipmi", "libvirt", "qemu")


class ParentModules:
    """`own` are those that the site brings. All of them run by the `zygote`."""

    def __init__(
        self,
        settings: ParentSettings,
        zygote: LoopZygote,
        grounds: Grounds,
        own: Sequence[OwnModule],
    ) -> None:
        self.settings = settings
        self.home = Path(settings.directory)
        self.zygote = zygote
        self.grounds = grounds
        self.own = tuple(own)
        others = [one.manifest for one in own]
        others += [one.manifest() for one in settings.controllers]
        self.catalog = catalog_of(settings.modules, others)
        self.codec = codec_of(self.catalog)

    @classmethod
    async def described(cls, settings: ParentSettings, zygote: LoopZygote) -> Self:
        """Ask those that the site brings what they declare."""
        home = Path(settings.directory)
        known = read_cluster(home)
        described = () if known is None else known.described
        grounds = grounds_of_parent(settings)
        # To say what it is, a module needs nothing.
        least = confinements(grounds, lambda _: None)
        own = await describe(zygote, settings.own, described, home, least)
        return cls(settings, zygote, grounds, own)

    def keep(self) -> None:
        """Have the next start find what they declared at this one."""
        one = self.settings
        cluster = ClusterIdentity(one.name, one.modules, one.controllers, one.own, self.own)
        keep_cluster(self.home, cluster)

    def logs(self) -> Logs:
        """The logs that they write, and the consoles that some of them record."""
        consoles = [self.grounds.folders / module for module in CONSOLES_BY]
        return Logs(self.home, self.catalog.modules(Context.PARENT), consoles)

    def confine(self) -> Confine:
        """The confinement of each."""
        return confinements(self.grounds, self.catalog.manifests.get)

    def confinement_told(self) -> Iterator[str]:
        """The confinement in force, in sentences for the log."""
        return confinement_told(self.grounds, self.catalog.manifests)
