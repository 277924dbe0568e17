"""The route of bulk: one request patches many entities, and each is answered for by itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

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
from haptera.api.requests.problems import problem
from haptera.api.writes.batch import PatchBatch
from haptera.api.writes.patching import Patcher
from haptera.api.writes.planning import Planning, digest_in
from haptera.model.errors import InputError
from haptera.rest import endpoints
from haptera.rest.schemas import Bulk, BulkBody

# As many patches as there may be, with room for what each changes.
BULK_BODY_BYTES_MAX: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class BulkRoutes:
    backend: Backend
    planning: Planning

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.BULK, self.bulk)

    async def bulk(self, request: Request, caller: Caller) -> Response:
        """Patch many entities; 200 says that all was done, 207 that some was not.

        With `all_or_nothing`, nothing is done where something cannot be: that is a problem then.
        """
        body = await read_body(request, BulkBody, BULK_BODY_BYTES_MAX)
        by = author(request, caller)
        patcher = Patcher(self.backend, by.who, claim_of(request), caller.within)
        batch = PatchBatch(self.planning, patcher, body.patches, digest_in(request))
        try:
            await batch.settle(None if dry_run(request) else by, whole=body.all_or_nothing)
        except InputError as error:
            return problem(error, batch.shared_status(), None)
        status = HTTPStatus.MULTI_STATUS if batch.problems else HTTPStatus.OK
        # What a plan hits may be more than what a token is limited to.
        plans = batch.plans if caller.within is None else []
        told = Bulk(self.backend.desires.revision(), list(batch.results()), plans)
        return as_json(told, status=status)
