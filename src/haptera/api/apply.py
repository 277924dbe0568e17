"""The route that takes a site file: what it changes, what would come of it, or the change."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.body import as_json, read_body
from haptera.api.endpoint import Caller, Endpoint, author, dry_run
from haptera.api.shapes import Applied, ChangeView, SiteBody, SiteFile
from haptera.model.changes import (
    Change,
    CloseIntent,
    Declare,
    OpenIntent,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.runtime.tokens import Scope
from haptera.runtime.writing import write

# Files, constants, what is stored, the cluster's name: haptera.config.site_changes.
SiteChanges = Callable[
    [Sequence[SiteFile], Mapping[str, str], Sequence[StoredEntity], str], tuple[Change, ...]
]
# A site as large as it may be, with room for what JSON escapes.
SITE_BODY_BYTES_MAX: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class ApplyRoute:
    backend: Backend
    site_changes: SiteChanges
    cluster: str

    def endpoints(self) -> Iterator[Endpoint]:
        yield Endpoint("POST", "/v1/apply", Scope.WRITE, self.apply, dry_scope=Scope.READ)

    async def apply(self, request: Request, caller: Caller) -> Response:
        body = await read_body(request, SiteBody, SITE_BODY_BYTES_MAX)

        async def make() -> tuple[Change, ...]:
            # Many nodes take seconds to expand: not in the thread that keeps the cluster.
            return await asyncio.to_thread(
                self.site_changes,
                body.files,
                body.constants,
                self.backend.stored(),
                self.cluster,
            )

        if dry_run(request):
            revision = self.backend.revision()
            changes = await make()
            views = await self.backend.preview(changes)
        else:
            by = author(request, caller)
            revision, changes = await write(self.backend, make, by, body.if_revision)
            views = []
        return as_json(Applied(revision, [change_view(change) for change in changes], views))


def change_view(change: Change) -> ChangeView:
    """One change as it is told."""
    match change:
        case Declare(entity):
            return ChangeView("declare", str(entity))
        case Undeclare(entity):
            return ChangeView("undeclare", str(entity))
        case SetDesired(entity, name, value):
            return ChangeView("set", str(entity), name, value)
        case UnsetDesired(entity, name):
            return ChangeView("unset", str(entity), name)
        case OpenIntent() | CloseIntent():
            raise AssertionError("an intent is no change of what is desired")
