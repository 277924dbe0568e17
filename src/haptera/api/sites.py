"""Routes of site files: what one changes, how it differs, and what is in force as one."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.body import as_json, read_body
from haptera.api.endpoint import UNWRITTEN, Caller, Contract, Endpoint, author, claim_of
from haptera.api.planning import UNPLANNED, Planning
from haptera.api.query import DIGEST, DRY_RUN, OWNER, TAKE, WHY
from haptera.core.desired.ownership import Claim
from haptera.model.changes import Change, StoredEntity
from haptera.rest.schemas import (
    Applied,
    Difference,
    DifferenceView,
    Exported,
    SiteBody,
    SiteFile,
)
from haptera.runtime.identity.tokens import Scope

# A site as large as it may be, with room for what JSON escapes.
SITE_BODY_BYTES_MAX: Final = 8 << 20

_Stored = Sequence[StoredEntity]


class Sites(Protocol):
    """Who reads site files: haptera.site.Sites. All of it may take seconds."""

    def changes(
        self,
        files: Sequence[SiteFile],
        constants: Mapping[str, str],
        current: _Stored,
        claim: Claim,
    ) -> tuple[Change, ...]: ...

    def difference(
        self, files: Sequence[SiteFile], constants: Mapping[str, str], current: _Stored
    ) -> list[DifferenceView]: ...

    def export(self, current: _Stored, owner: str | None) -> str: ...


@dataclass(frozen=True, slots=True)
class SiteRoutes:
    """What may take seconds is done in another thread than the one that keeps the cluster."""

    backend: Backend
    sites: Sites
    planning: Planning

    def endpoints(self) -> Iterator[Endpoint]:
        contract = Contract(
            takes=SiteBody,
            gives=Applied,
            queries=(DRY_RUN, DIGEST, TAKE, WHY),
            problems=(*UNWRITTEN, *UNPLANNED),
            keyed=True,
        )
        path = "/v1/apply"
        yield Endpoint("POST", path, Scope.WRITE, self.apply, contract, dry_scope=Scope.READ)
        contract = Contract(takes=SiteBody, gives=Difference)
        yield Endpoint("POST", "/v1/diff", Scope.READ, self.diff, contract)
        contract = Contract(gives=Exported, queries=(OWNER,))
        yield Endpoint("GET", "/v1/export", Scope.READ, self.export, contract)

    async def apply(self, request: Request, caller: Caller) -> Response:
        """Make a site what the cluster should be, or say what would come of that."""
        body = await read_body(request, SiteBody, SITE_BODY_BYTES_MAX)
        claim = claim_of(request)

        async def make() -> tuple[Change, ...]:
            stored = self.backend.stored()
            return await asyncio.to_thread(
                self.sites.changes, body.files, body.constants, stored, claim
            )

        by = author(request, caller)
        return as_json(await self.planning.apply(request, make, by, body.if_revision))

    async def diff(self, request: Request, _caller: Caller) -> Response:
        """In what a site and what is in force differ."""
        body = await read_body(request, SiteBody, SITE_BODY_BYTES_MAX)
        revision, stored = self.backend.revision(), self.backend.stored()
        found = await asyncio.to_thread(self.sites.difference, body.files, body.constants, stored)
        return as_json(Difference(revision, found))

    async def export(self, request: Request, _caller: Caller) -> Response:
        """What is in force, as a site file."""
        revision, stored = self.backend.revision(), self.backend.stored()
        owner = request.query_params.get("owner")
        text = await asyncio.to_thread(self.sites.export, stored, owner)
        return as_json(Exported(revision, text))
