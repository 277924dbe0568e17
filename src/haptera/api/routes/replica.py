"""The route by which a standby follows a parent's store, and a parent below it does."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import Caller, Contract, Endpoint, number
from haptera.api.requests.query import Query
from haptera.model.errors import HapteraError
from haptera.model.token_scope import Scope
from haptera.rest.schemas import ReplicaView, ReportBody, ReportTaken
from haptera.runtime.store.feed import Follower

REPORT_BYTES_MAX: Final = 64 << 20
_PLACE_MAX: Final = 1 << 62
FOLLOWER: Final = Query(
    "as", "Who follows: a standby, or a parent below.", Literal["standby", "below"], required=True
)
LOG: Final = Query("log", "The log of the last answer.", Annotated[int, Meta(ge=0)])
PLACE: Final = Query("place", "How far of that log is held.", Annotated[int, Meta(ge=0)])
FILES: Final = Query("files", "The digest of the files that are held.")


@dataclass(frozen=True, slots=True)
class ReplicaRoutes:
    backend: Backend

    def endpoints(self) -> Iterator[Endpoint]:
        contract = Contract(gives=ReplicaView, queries=(FOLLOWER, LOG, PLACE, FILES))
        yield Endpoint("GET", "/v1/replica", Scope.ADMIN, self.get, contract)
        contract = Contract(takes=ReportBody, gives=ReportTaken)
        yield Endpoint("POST", "/v1/reports", Scope.ADMIN, self.report, contract)

    async def get(self, request: Request, _caller: Caller) -> Response:
        """What was written since a place, within a second; from nowhere, the whole state file."""
        follower = request.query_params["as"]
        if follower not in set(Follower):
            raise HapteraError(
                f"as={follower!r}",
                where="the query",
                do=f"write {' or '.join(Follower)}",
            )
        log = number(request, "log", 0, least=0, most=_PLACE_MAX)
        place = number(request, "place", 0, least=0, most=_PLACE_MAX)
        assert log is not None
        assert place is not None
        files = request.query_params.get("files", "")
        return as_json(await self.backend.replica(Follower(follower), log, place, files))

    async def report(self, request: Request, _caller: Caller) -> Response:
        """What a parent below keeps, by its own word."""
        body = await read_body(request, ReportBody, REPORT_BYTES_MAX)
        return as_json(await self.backend.report(body.report))
