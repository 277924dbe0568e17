"""What the API asks of site files: what they change, how they differ, what there is as one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from haptera.core.desired.ownership import Claim
from haptera.model.changes import Change, StoredEntity
from haptera.model.errors import ConflictError
from haptera.model.parts import Manifest
from haptera.rest.schemas import DifferenceView, SiteFile
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.processes.places import ModulePlace
from haptera.site.apply.changes import changes
from haptera.site.apply.difference import difference
from haptera.site.apply.export import Places, export
from haptera.site.model.settings import check_secrets
from haptera.site.model.site import Site, parse_site


@dataclass(frozen=True, slots=True)
class Sites:
    """The sites of one cluster, with the modules and controllers that its parent started with.

    `manifests` tells what these declare by now.
    """

    cluster: str
    modules: tuple[str, ...] = ()
    controllers: tuple[ControllerPlace, ...] = ()
    own: tuple[ModulePlace, ...] = ()
    manifests: Callable[[], Iterable[Manifest]] = tuple

    def changes(
        self,
        files: Sequence[SiteFile],
        constants: Mapping[str, str],
        current: Sequence[StoredEntity],
        claim: Claim,
    ) -> tuple[Change, ...]:
        """What a site changes of what is stored.

        Raises:
            HapteraError: it is wrong, for another cluster, or in another owner's way.
        """
        return changes(self._parse(files, constants), current, claim)

    def difference(
        self,
        files: Sequence[SiteFile],
        constants: Mapping[str, str],
        current: Sequence[StoredEntity],
    ) -> list[DifferenceView]:
        """Where a site wants other than what is stored, or no longer wants what it owns.

        Raises:
            HapteraError: it is wrong, or for another cluster.
        """
        return [*difference(self._parse(files, constants), current)]

    def export(self, current: Sequence[StoredEntity], owner: str | None) -> str:
        """What is stored as a site file: all of it, or what one owner has."""
        places = Places(self.modules, self.own, self.controllers)
        return export(self.cluster, places, current, owner)

    def _parse(self, files: Sequence[SiteFile], constants: Mapping[str, str]) -> Site:
        site = parse_site(files, constants)
        if site.cluster != self.cluster:
            raise ConflictError(
                f"this is a site of cluster {site.cluster}; here is cluster {self.cluster}",
                where=files[0].name,
                do="apply it to its own cluster, or correct its name",
            )
        check_secrets(site, self.manifests())
        return site
