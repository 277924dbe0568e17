"""The API of a parent: its backend and its sites, behind its doors."""

from collections.abc import Iterator
from dataclasses import dataclass

from haptera.api.app import make_app
from haptera.api.backend import Backend
from haptera.api.requests.meters import Meters
from haptera.api.routes.metrics import Tallies
from haptera.api.serving.server import Server
from haptera.daemon.parent.doors import Doors
from haptera.runtime.network.own_certificate import OwnCertificate
from haptera.site.apply.sites import Sites


@dataclass(frozen=True, slots=True)
class ParentApi:
    """The doors are open already."""

    backend: Backend
    sites: Sites
    meters: Meters
    doors: Doors

    def servers(self, tallies: Tallies) -> Iterator[Server | OwnCertificate]:
        """The servers of the API, with these counts in its metrics."""
        app = make_app(
            self.backend,
            self.sites,
            cluster=self.sites.cluster,
            tallies=tallies,
            meters=self.meters,
            entry=self.doors.entry,
        )
        return self.doors.servers(app)
