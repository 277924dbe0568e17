"""Routes of the brake: whether it is on and why, and letting go on before it is off by itself."""

from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.body import as_json
from haptera.api.endpoint import Caller, Endpoint, author
from haptera.runtime.tokens import Scope


@dataclass(frozen=True, slots=True)
class BrakeRoutes:
    backend: Backend

    def endpoints(self) -> Iterator[Endpoint]:
        yield Endpoint("GET", "/v1/brake", Scope.READ, self.get)
        yield Endpoint("DELETE", "/v1/brake", Scope.WRITE, self.release)

    async def get(self, _request: Request, _caller: Caller) -> Response:
        return as_json(self.backend.brake())

    async def release(self, request: Request, caller: Caller) -> Response:
        """Disruptive steps go on at once; the answer is how it stood before."""
        before = self.backend.brake()
        self.backend.note(author(request, caller).who, "release the brake")
        self.backend.release()
        return as_json(before)
