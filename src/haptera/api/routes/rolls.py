"""The route that begins a roll."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import (
    Caller,
    Handler,
    author,
    check_by_name,
    claim_of,
    dry_run,
)
from haptera.api.requests.problems import problem
from haptera.api.writes.batch import PatchBatch
from haptera.api.writes.patching import Patcher
from haptera.api.writes.planning import Planning, digest_in
from haptera.api.writes.rolling import roll_start
from haptera.core.desired.ownership import Claim
from haptera.model.errors import InputError
from haptera.rest import endpoints
from haptera.rest.rolls import RollBody, RollStarted
from haptera.selectors.selector import parse_selector


@dataclass(frozen=True, slots=True)
class RollRoutes:
    """`wall_s` is people's time, in seconds since 1970."""

    backend: Backend
    planning: Planning
    wall_s: Callable[[], float]

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.BEGIN_ROLL, self.begin)

    async def begin(self, request: Request, caller: Caller) -> Response:
        """Update systems to an image, a few at a time: all of them are in the roll, or none begins.

        With `?dry_run=1`, the answer has the plan of all that the roll disrupts until its end.
        """
        body = await read_body(request, RollBody)
        by, claim = author(request, caller), claim_of(request)
        within = [] if caller.within is None else [caller.within]
        if within:
            check_by_name([parse_selector(body.select)])
        taking = claim is Claim.TAKE
        start = await roll_start(
            self.backend.queries, body, within, taking=taking, wall_s=self.wall_s()
        )
        patcher = Patcher(self.backend, by.who, claim, caller.within)
        batch = PatchBatch(self.planning, patcher, start.patches(), digest_in(request))
        end = PatchBatch(self.planning, patcher, start.patches_at_end(), None)
        told = RollStarted(start.name, len(start.systems), start.owners, list(start.others))
        try:
            await batch.settle(None if dry_run(request) else by, whole=True)
            if dry_run(request):
                await end.settle(None, whole=True)
        except InputError as error:
            return problem(error, batch.shared_status(), None)
        # What a plan hits may be more than what a token is limited to.
        plans = end.plans if caller.within is None else []
        return as_json(replace(told, plans=plans))
