"""The API as one application: its routes with their scopes, its middleware, its stream's task."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

import haptera
from haptera.api.apply import ApplyRoute, SiteChanges
from haptera.api.backend import Backend
from haptera.api.body import as_json
from haptera.api.endpoint import Caller, Endpoint, ScopedRoute, check_scopes
from haptera.api.entities import EntityRoutes
from haptera.api.feed import Feed
from haptera.api.guard import Guard
from haptera.api.page import page_endpoints
from haptera.api.problems import on_bug, on_haptera_error, on_http_error
from haptera.api.stream import StreamRoute
from haptera.model.errors import HapteraError


def make_app(
    backend: Backend,
    site_changes: SiteChanges,
    *,
    cluster: str,
    hosts: Collection[str] = (),
) -> Starlette:
    """The application; `hosts` are the names, besides addresses, under which it may be asked."""
    feed = Feed(backend)
    app = Starlette(
        routes=[
            ScopedRoute(endpoint, backend.check_token)
            for endpoint in endpoints(backend, feed, site_changes, cluster)
        ],
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={
            HapteraError: on_haptera_error,
            HTTPException: on_http_error,
            Exception: on_bug,
        },
        lifespan=_feeding,
    )
    check_scopes(app.routes)
    app.state.feed = feed
    return app


def endpoints(
    backend: Backend, feed: Feed, site_changes: SiteChanges, cluster: str
) -> Iterator[Endpoint]:
    """All routes with their scopes."""
    yield Endpoint("GET", "/v1/health", None, _health)
    yield from EntityRoutes(backend, cluster).endpoints()
    yield from ApplyRoute(backend, site_changes, cluster).endpoints()
    yield from StreamRoute(backend, feed, cluster).endpoints()
    yield from page_endpoints()


async def _health(_request: Request, _caller: Caller) -> Response:
    return as_json({"status": "ok", "version": haptera.__version__})


@asynccontextmanager
async def _feeding(app: Starlette) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        feeding = tasks.create_task(app.state.feed.run())
        yield
        feeding.cancel()
