"""What the API asks of site files: what they change, how they differ, what there is as one."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from haptera.kinds import KINDS
from haptera.model.changes import StoredEntity
from haptera.model.errors import ConflictError
from haptera.model.parts import Manifest
from haptera.rest.schemas import SiteFile
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.processes.places import ModulePlace
from haptera.site.apply.export import StartedWith, export
from haptera.site.apply.proposal import (
    Proposal,
    SiteQuestion,
    answer,
    ask,
    code_of,
    started_with,
    understood,
)
from haptera.site.model.site import Site


async def _in_a_thread(question: bytes) -> bytes:
    return await asyncio.to_thread(answer, question)


@dataclass(frozen=True, slots=True)
class Sites:
    """The sites of one cluster, with the modules and controllers that its parent started with.

    `manifests` tells what these declare by now; `work` is where files are read.
    """

    cluster: str
    modules: tuple[str, ...] = ()
    controllers: tuple[ControllerPlace, ...] = ()
    own: tuple[ModulePlace, ...] = ()
    manifests: Callable[[], Iterable[Manifest]] = tuple
    work: Callable[[bytes], Awaitable[bytes]] = _in_a_thread

    async def read(self, files: Sequence[SiteFile], constants: Mapping[str, str]) -> Proposal:
        """Read the files of a site.

        Raises:
            HapteraError: it is wrong, too large, or for another cluster.
        """
        settings = {one.name: list(one.settings or ()) for one in self.manifests()}
        question = SiteQuestion(list(files), dict(constants), self.cluster, settings)
        proposal = understood(question, await self.work(ask(question)))
        if (kind := next((one for one in proposal.kinds if one not in KINDS), None)) is not None:
            what = f"kind {kind} is declared here, and this parent was started without it"
            do = "start the parent with this site file, then apply it"
            raise ConflictError(what, where=files[0].name, do=do)
        return proposal

    def new_code(self, proposal: Proposal) -> list[str]:
        """The modules and controllers of it whose code is not what this parent runs."""
        known = dict(code_of(self._started))
        return sorted(name for name, code in proposal.code.items() if known.get(name) != code)

    def not_started(self, proposal: Proposal) -> list[str]:
        """The modules and controllers of it that this parent did not start with."""
        return sorted({*proposal.started} - {*started_with(self._started)})

    def export(self, current: Sequence[StoredEntity], owner: str | None) -> str:
        """What is stored as a site file: all of it, or what one owner has."""
        places = StartedWith(self.modules, self.own, self.controllers)
        return export(self.cluster, places, current, owner)

    @property
    def _started(self) -> Site:
        """What the parent runs, as a site of nothing else."""
        return Site(self.cluster, (), self.modules, {}, self.controllers, self.own)
