"""Images: signed manifests, and artefacts by digest, to nodes that are to run them."""

import asyncio
import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from haptera.api.requests.callers import CERTIFICATE
from haptera.api.requests.order import ServingOrder
from haptera.modules.image.store import ImageStore

# Which images somebody with this certificate may have, by name or digest; None: all of them.
Wanted = Callable[[dict[str, Any] | None], Collection[str] | None]
# Who does not read for so long has its turn taken away, and may ask for the rest.
STALLED_S: Final = 10.0
_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Images:
    """The service of an image store; artefacts are sent in the `order` of their requests.

    `is_made` says by its name whether an image is being built.
    """

    store: ImageStore
    wanted: Wanted
    order: ServingOrder
    is_made: Callable[[str], bool]

    def app(self) -> Starlette:
        """The application, for a server that asks for certificates."""
        return Starlette(
            routes=[
                Route("/images/{reference}", self.manifest, methods=["GET"]),
                Route("/artefacts/{digest}", self.artefact, methods=["GET"]),
            ]
        )

    async def manifest(self, request: Request) -> Response:
        """The signed manifest of an image."""
        reference = request.path_params["reference"]
        wanted = self.wanted(_certificate(request))
        if wanted is not None and reference not in wanted:
            return _text(HTTPStatus.FORBIDDEN, f"image {reference!r} is not for this node")
        signed = self.store.signed(reference)
        if signed is None and self.is_made(reference):
            text = f"image {reference!r} is being built"
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, text)
        if signed is None:
            text = f"there is no image {reference!r} here yet: see haptera image list"
            return _text(HTTPStatus.NOT_FOUND, text)
        return Response(signed, media_type=_JSON)

    async def artefact(self, request: Request) -> Response:
        """The artefact of a digest, or the part of it that a Range names."""
        digest = request.path_params["digest"]
        certificate = _certificate(request)
        wanted = self.wanted(certificate)
        due = map(self.store.manifest, [digest] if wanted is None else wanted)
        if not any(one is not None and one.digest == digest for one in due):
            return _text(HTTPStatus.FORBIDDEN, f"{digest} is not for this node")
        place = self.store.artefact(digest)
        if not place.is_file():
            return _text(HTTPStatus.NOT_FOUND, f"{digest} is gone")
        whole = FileResponse(place, media_type=_BYTES)
        return InTurn(whole, self.order, str((certificate or {}).get("serialNumber")))


class InTurn(Response):
    """A long answer that is sent when it is the caller's turn, at the rate of all together."""

    def __init__(self, whole: Response, order: ServingOrder, caller: str) -> None:
        super().__init__()
        self._whole = whole
        self._order = order
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()

        async def paced(message: Message) -> None:
            size_bytes = len(message.get("body", b""))
            if delay_s := self._order.delay_s(size_bytes, loop.time()):
                await asyncio.sleep(delay_s)
            async with asyncio.timeout(STALLED_S):
                await send(message)

        async with self._order.turn(self._caller) as before:
            if before is None:
                with contextlib.suppress(TimeoutError):
                    await self._whole(scope, receive, paced)
                return
        text = f"{before} are served before this one: ask again"
        await _text(HTTPStatus.SERVICE_UNAVAILABLE, text)(scope, receive, send)


def _certificate(request: Request) -> dict[str, Any] | None:
    shown: dict[str, Any] | None = request.scope.get("state", {}).get(CERTIFICATE)
    return shown


def _text(status: HTTPStatus, text: str) -> Response:
    return PlainTextResponse(text, status)
