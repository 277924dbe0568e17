"""The API as one application: its routes with their scopes, and its middleware."""

from collections.abc import Callable, Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

import haptera
from haptera.api.backend import Backend
from haptera.api.openapi import served_openapi
from haptera.api.requests.body import as_json
from haptera.api.requests.callers import ENTRY, Callers, EntryRules
from haptera.api.requests.endpoint import Caller, Handler, ScopedRoute, check_scopes
from haptera.api.requests.meters import Meters
from haptera.api.requests.problems import on_bug, on_haptera_error, on_http_error
from haptera.api.requests.standing_lines import StandingLines
from haptera.api.routes.brake import BrakeRoutes
from haptera.api.routes.bulk import BulkRoutes
from haptera.api.routes.entities import EntityRoutes
from haptera.api.routes.execution import ExecutionRoute
from haptera.api.routes.freezes import FreezeRoutes
from haptera.api.routes.history import HistoryRoutes
from haptera.api.routes.inventory import InventoryRoute
from haptera.api.routes.metrics import Counted, CountedJobs, MetricsRoute, Tallies
from haptera.api.routes.nodes import NodeRoutes
from haptera.api.routes.page import served_page
from haptera.api.routes.queue import JobRoutes
from haptera.api.routes.replica import ReplicaRoutes
from haptera.api.routes.rolls import RollRoutes
from haptera.api.routes.samples import ReadingRoute, SampleRoutes
from haptera.api.routes.sites import SiteReader, SiteRoutes
from haptera.api.routes.stream import StreamRoute
from haptera.api.routes.tokens import TokenRoutes
from haptera.api.serving.guard import Guard
from haptera.api.serving.idempotency import Idempotency
from haptera.api.writes.planning import Planning
from haptera.model.errors import HapteraError
from haptera.rest import endpoints
from haptera.rest.schemas import Health
from haptera.runtime import clock


def make_app(
    backend: Backend,
    sites: SiteReader[Any],
    *,
    cluster: str,
    tallies: Tallies | None = None,
    meters: Meters | None = None,
    entry: EntryRules = ENTRY,
    wall_s: Callable[[], float] = clock.wall_s,
) -> Starlette:
    """The application, asked as `entry` says.

    What `tallies` counts and `meters` measured is exported to Prometheus.
    """
    streams = StreamRoute(backend, cluster)
    meters, keys = meters or Meters(), Idempotency(backend.orders)
    callers = Callers(backend.tokens.check, entry.check_peer)
    meters.registry.register(
        counted := Counted(cluster, backend.queries.figures, tallies or Tallies())
    )
    meters.registry.register(CountedJobs(lambda: backend.jobs.queue, wall_s))
    served = [
        *all_served(backend, streams, sites, cluster, wall_s),
        *MetricsRoute(meters, counted).served(),
    ]
    served.append(served_openapi(served))
    app = Starlette(
        routes=[
            ScopedRoute(
                keys.heeded(one), callers, meters, backend.tree.durability, _methods(served, one)
            )
            for one in served
        ],
        middleware=[Middleware(Guard, hosts=entry.hosts)],
        exception_handlers={
            HapteraError: on_haptera_error,
            HTTPException: on_http_error,
            Exception: on_bug,
        },
    )
    check_scopes(app.routes)
    app.state.streams = streams
    return app


def all_served(
    backend: Backend,
    streams: StreamRoute,
    sites: SiteReader[Any],
    cluster: str,
    wall_s: Callable[[], float] = clock.wall_s,
) -> Iterator[Handler]:
    """All endpoints with what answers them."""
    planning = Planning(backend.desires)
    yield Handler(endpoints.HEALTH, _health)
    yield from EntityRoutes(backend, cluster, StandingLines(wall_s)).served()
    yield from BulkRoutes(backend, planning).served()
    yield from RollRoutes(backend, planning, wall_s).served()
    yield from SiteRoutes(backend, sites, planning).served()
    yield from FreezeRoutes(backend, wall_s).served()
    yield from BrakeRoutes(backend).served()
    yield from HistoryRoutes(backend, planning, wall_s).served()
    yield from TokenRoutes(backend).served()
    yield from ReplicaRoutes(backend.tree).served()
    yield from NodeRoutes(backend).served()
    yield from InventoryRoute(backend.outputs).served()
    yield from JobRoutes(backend, wall_s).served()
    yield from ExecutionRoute(backend).served()
    yield from SampleRoutes(backend).served()
    yield from ReadingRoute(backend).served()
    yield from streams.served()
    yield from served_page()


def _methods(served: list[Handler], one: Handler) -> str:
    """The methods of all routes with this one's path."""
    same = (each.endpoint for each in served if each.endpoint.path == one.endpoint.path)
    return ", ".join(each.method for each in same)


async def _health(_request: Request, _caller: Caller) -> Response:
    """That the parent runs, and its version."""
    return as_json(Health("ok", haptera.__version__))
