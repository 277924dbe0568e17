"""Routes of the brake: whether it is on and why, and letting go on before it is off by itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json
from haptera.api.requests.endpoint import Caller, Handler, author
from haptera.model.answers.views import BrakeView
from haptera.model.events import Released
from haptera.rest import endpoints

UNCOUNTED: Final = "many nodes fell silent"


@dataclass(frozen=True, slots=True)
class BrakeRoutes:
    backend: Backend

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.BRAKE, self.get)
        yield Handler(endpoints.RELEASE_BRAKE, self.release)

    async def get(self, _request: Request, caller: Caller) -> Response:
        """The brake's reason and duration; a limited token sees no number of nodes."""
        brake = self.backend.queries.brake()
        if caller.within is not None and brake.why is not None:
            brake = BrakeView(UNCOUNTED, brake.left_ms)
        return as_json(brake)

    async def release(self, request: Request, caller: Caller) -> Response:
        """Disruptive steps go on at once; the answer is how it stood before."""
        before = self.backend.queries.brake()
        who = author(request, caller).who
        await self.backend.orders.request(Released(), who, "release the brake")
        return as_json(before)
