"""Routes of what a node has beyond its entity: the session of its agent."""

from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.body import as_json
from haptera.api.endpoint import NOT_FOUND, Caller, Contract, Endpoint, author
from haptera.api.patching import missing
from haptera.api.query import WHY
from haptera.core.state.limits import OVERRIDE_NS, S
from haptera.model.entity import node_id
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import Evicted, Overridden
from haptera.runtime.identity.tokens import Scope


@dataclass(frozen=True, slots=True)
class NodeRoutes:
    backend: Backend

    def endpoints(self) -> Iterator[Endpoint]:
        contract = Contract(gives=Evicted, problems=(NOT_FOUND,), queries=(WHY,), keyed=True)
        yield Endpoint("DELETE", "/v1/nodes/{node}/session", Scope.ADMIN, self.evict, contract)

        contract = Contract(gives=Overridden, problems=(NOT_FOUND,), queries=(WHY,), keyed=True)
        path = "/v1/nodes/{node}/override"
        yield Endpoint("POST", path, Scope.ADMIN, self.override, contract)

    async def override(self, request: Request, caller: Caller) -> Response:
        """Need no permit of a node for a while, as where its gate never grants one; say why."""
        node = request.path_params["node"]
        by = author(request, caller)
        if by.why is None:
            raise HapteraError(
                "a reason is required: why no work is lost",
                where="why in the query",
                do="say why nothing is: why=…, or -m",
                code=Code.MISSING,
            )
        if self.backend.entity(node_id(node)) is None:
            raise missing(node_id(node))
        self.backend.note(by.who, f"override the permit of {node}: {by.why}")
        self.backend.release(node)
        return as_json(Overridden(node, OVERRIDE_NS // S))

    async def evict(self, request: Request, caller: Caller) -> Response:
        """End a node's session: it is neither heard nor answered until it is booted anew."""
        node = request.path_params["node"]
        self.backend.note(author(request, caller).who, f"evict {node}")
        incarnation = await self.backend.evict(node)
        if incarnation is None:
            raise HapteraError(
                f"{node} has no session",
                do="see which nodes there are: haptera get node",
                code=Code.NOT_FOUND,
            )
        return as_json(Evicted(node, incarnation))
