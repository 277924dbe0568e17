"""The route by which a standby follows a parent's store, and a parent below it does."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import TreeDesk
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import Caller, Handler, read_query
from haptera.rest import endpoints, query
from haptera.rest.schemas import ReportBody
from haptera.runtime.store.feed import Follower

REPORT_BYTES_MAX: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class ReplicaRoutes:
    tree: TreeDesk

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.REPLICA, self.get)
        yield Handler(endpoints.REPORT, self.report)

    async def get(self, request: Request, _caller: Caller) -> Response:
        """What was written since a place, within a second; from nowhere, the whole state file."""
        asked = read_query(request, query.ReplicaQuery)
        follower = Follower(asked.follower)
        return as_json(await self.tree.replica(follower, asked.log, asked.place, asked.files))

    async def report(self, request: Request, _caller: Caller) -> Response:
        """What a parent below keeps, by its own word."""
        body = await read_body(request, ReportBody, REPORT_BYTES_MAX)
        return as_json(await self.tree.report(body.report))
