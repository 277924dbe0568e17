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
from haptera.api.openapi import openapi_endpoint
from haptera.api.requests.body import as_json
from haptera.api.requests.callers import ENTRY, Callers, EntryRules
from haptera.api.requests.console_readings import ConsoleReadings
from haptera.api.requests.endpoint import Caller, Contract, Endpoint, ScopedRoute, check_scopes
from haptera.api.requests.meters import Meters
from haptera.api.requests.problems import on_bug, on_haptera_error, on_http_error
from haptera.api.routes.brake import BrakeRoutes
from haptera.api.routes.bulk import BulkRoutes
from haptera.api.routes.entities import EntityRoutes
from haptera.api.routes.execution import ExecutionRoute
from haptera.api.routes.freezes import FreezeRoutes
from haptera.api.routes.history import HistoryRoutes
from haptera.api.routes.inventory import InventoryRoute
from haptera.api.routes.metrics import Counted, CountedJobs, MetricsRoute, Tallies
from haptera.api.routes.nodes import NodeRoutes
from haptera.api.routes.page import page_endpoints
from haptera.api.routes.queue import JobRoutes
from haptera.api.routes.replica import ReplicaRoutes
from haptera.api.routes.samples import SampleRoutes
from haptera.api.routes.sites import SiteReader, SiteRoutes
from haptera.api.routes.stream import StreamRoute
from haptera.api.routes.tokens import TokenRoutes
from haptera.api.serving.guard import Guard
from haptera.api.serving.idempotency import Idempotency
from haptera.api.writes.planning import Planning
from haptera.model.errors import HapteraError
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

    What `tallies` counts and `meters` measured is told to Prometheus.
    """
    streams = StreamRoute(backend, cluster)
    meters, keys = meters or Meters(), Idempotency(backend)
    callers = Callers(backend.check_token, entry.check_peer)
    meters.registry.register(counted := Counted(cluster, backend.figures, tallies or Tallies()))
    meters.registry.register(CountedJobs(lambda: backend.jobs.queue, wall_s))
    served = [
        *endpoints(backend, streams, sites, cluster, wall_s),
        *MetricsRoute(meters, counted).endpoints(),
    ]
    served.append(openapi_endpoint(served))
    methods: dict[str, list[str]] = {}
    for endpoint in served:
        methods.setdefault(endpoint.path, []).append(endpoint.method)
    app = Starlette(
        routes=[
            ScopedRoute(
                keys.heeded(one), callers, meters, backend.durability, ", ".join(methods[one.path])
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


def endpoints(
    backend: Backend,
    streams: StreamRoute,
    sites: SiteReader[Any],
    cluster: str,
    wall_s: Callable[[], float] = clock.wall_s,
) -> Iterator[Endpoint]:
    """All routes with their scopes."""
    planning = Planning(backend)
    yield Endpoint("GET", "/v1/health", None, _health, Contract(gives=Health))
    yield from EntityRoutes(backend, cluster, ConsoleReadings(backend.note, wall_s)).endpoints()
    yield from BulkRoutes(backend, planning).endpoints()
    yield from SiteRoutes(backend, sites, planning).endpoints()
    yield from FreezeRoutes(backend, wall_s).endpoints()
    yield from BrakeRoutes(backend).endpoints()
    yield from HistoryRoutes(backend, planning, wall_s).endpoints()
    yield from TokenRoutes(backend).endpoints()
    yield from ReplicaRoutes(backend).endpoints()
    yield from NodeRoutes(backend).endpoints()
    yield from InventoryRoute(backend).endpoints()
    yield from JobRoutes(backend, wall_s).endpoints()
    yield from ExecutionRoute(backend).endpoints()
    yield from SampleRoutes(backend).endpoints()
    yield from streams.endpoints()
    yield from page_endpoints()


async def _health(_request: Request, _caller: Caller) -> Response:
    """That the parent runs, and its version."""
    return as_json(Health("ok", haptera.__version__))
