"""Routes of site files: what one changes, how it differs, and what is in force as one."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import (
    Caller,
    Handler,
    author,
    claim_of,
    dry_run,
)
from haptera.api.requests.turns import Turns
from haptera.api.writes.planning import Planning
from haptera.core.desired.ownership import Claim
from haptera.model.changes import Change, StoredEntity
from haptera.model.errors import Code, HapteraError
from haptera.rest import endpoints
from haptera.rest.schemas import (
    Difference,
    DifferenceView,
    Exported,
    SiteBody,
    SiteFile,
)
from haptera.runtime.identity.tokens import Scope
from haptera.runtime.reading_threads import in_reading_thread

# A site as large as it may be, with room for what JSON escapes.
SITE_BODY_BYTES_MAX: Final = 8 << 20


_Stored = Sequence[StoredEntity]


class SiteProposal(Protocol):
    """A site that was read; what it makes of what is stored may take seconds."""

    def changes(self, current: _Stored, claim: Claim) -> tuple[Change, ...]: ...

    def difference(self, current: _Stored) -> list[DifferenceView]: ...


Read = TypeVar("Read", bound=SiteProposal)


class SiteReader(Protocol[Read]):
    """Who reads site files: haptera.site.Sites."""

    async def read(self, files: Sequence[SiteFile], constants: Mapping[str, str]) -> Read: ...

    def new_code(self, proposal: Read) -> list[str]:
        """The modules and controllers of it whose code is not what the parent runs."""

    def not_started(self, proposal: Read) -> list[str]:
        """The modules and controllers of it that the parent did not start with."""

    def export(self, current: _Stored, owner: str | None) -> str: ...


@dataclass(frozen=True, slots=True)
class SiteRoutes:
    """What may take seconds is done elsewhere than in the thread that keeps the cluster.

    Files are read for each token one after the other.
    """

    backend: Backend
    sites: SiteReader[Any]
    planning: Planning
    turns: Turns = field(default_factory=Turns)

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.APPLY, self.apply)
        yield Handler(endpoints.DIFF, self.diff)
        yield Handler(endpoints.EXPORT, self.export)

    async def apply(self, request: Request, caller: Caller) -> Response:
        """Make a site what the cluster should be, or say what would come of that."""
        body = await read_body(request, SiteBody, SITE_BODY_BYTES_MAX)
        claim = claim_of(request)

        site = await self._read(body, caller)
        if not dry_run(request):
            self._check_code(site, caller)

        async def make() -> tuple[Change, ...]:
            return await asyncio.to_thread(site.changes, await self.backend.desires.stored(), claim)

        by = author(request, caller)
        applied = await self.planning.apply(request, make, by, body.if_revision)
        return as_json(replace(applied, not_started=self.sites.not_started(site)))

    async def diff(self, request: Request, caller: Caller) -> Response:
        """In what a site and what is in force differ."""
        body = await read_body(request, SiteBody, SITE_BODY_BYTES_MAX)
        site = await self._read(body, caller)
        revision, stored = self.backend.desires.revision(), await self.backend.desires.stored()
        found = await asyncio.to_thread(site.difference, stored)
        return as_json(Difference(revision, found))

    async def export(self, request: Request, _caller: Caller) -> Response:
        """What is in force, as a site file."""
        revision, stored = self.backend.desires.revision(), await self.backend.desires.stored()
        owner = request.query_params.get("owner")
        text = await in_reading_thread(self.sites.export, stored, owner)
        return as_json(Exported(revision, text))

    async def _read(self, body: SiteBody, caller: Caller) -> SiteProposal:
        async with self.turns.turn(caller.name or ""):
            proposal: SiteProposal = await self.sites.read(body.files, body.constants)
        return proposal

    def _check_code(self, site: SiteProposal, caller: Caller) -> None:
        """Refuse code that the parent does not run, unless an admin brings it."""
        new = self.sites.new_code(site)
        if new and caller.scope is not Scope.ADMIN:
            raise HapteraError(
                f"the code of {', '.join(new)} is not what this parent runs",
                where="place or exec in the site",
                do=f"use a token that allows {Scope.ADMIN}, or keep the code that is in force",
                code=Code.FORBIDDEN,
            )
