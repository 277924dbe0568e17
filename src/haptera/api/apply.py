"""The route that takes a site file: what it changes, what would come of it, or the change."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.body import as_json, read_body
from haptera.api.endpoint import Caller, Endpoint, dry_run
from haptera.api.writing import write
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
from haptera.model.views import EntityView
from haptera.runtime.tokens import Scope

# text, file name, constants, what is stored, the cluster's name: haptera.config.site_changes.
SiteChanges = Callable[
    [str, str, Mapping[str, str], Sequence[StoredEntity], str], tuple[Change, ...]
]


class SiteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site file as sent: `name` is what errors call it, `constants` what templates know.

    With `if_revision` it is applied only if nothing that is desired changed since.
    """

    text: str
    name: str
    constants: dict[str, str] = {}
    if_revision: int | None = None


class ChangeView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of desired state; `does` is declare, undeclare, set or unset."""

    does: str
    entity: str
    name: str | None = None
    value: str | int | None = None


class Applied(msgspec.Struct, frozen=True):
    """What was changed, or would be; `entities` only for a dry run: as they would be."""

    revision: int
    changes: list[ChangeView]
    entities: list[EntityView]


@dataclass(frozen=True, slots=True)
class ApplyRoute:
    backend: Backend
    site_changes: SiteChanges
    cluster: str

    def endpoints(self) -> Iterator[Endpoint]:
        yield Endpoint("POST", "/v1/apply", Scope.WRITE, self.apply, dry_scope=Scope.READ)

    async def apply(self, request: Request, _caller: Caller) -> Response:
        body = await read_body(request, SiteBody)

        async def make() -> tuple[Change, ...]:
            # Many nodes take seconds to expand: not in the thread that keeps the cluster.
            return await asyncio.to_thread(
                self.site_changes,
                body.text,
                body.name,
                body.constants,
                self.backend.stored(),
                self.cluster,
            )

        if dry_run(request):
            revision = self.backend.revision()
            changes = await make()
            views = await self.backend.preview(changes)
        else:
            revision, changes = await write(self.backend, make, body.if_revision)
            views = []
        return as_json(Applied(revision, [_view(change) for change in changes], views))


def _view(change: Change) -> ChangeView:
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
            raise AssertionError("a site file holds no intents")
