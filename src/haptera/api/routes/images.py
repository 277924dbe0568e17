"""Images for nodes: signed manifests, and artefacts by digest, to those that are to run them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from haptera.api.requests.callers import CERTIFICATE
from haptera.modules.image.store import ImageStore

# Who a verified certificate says that somebody is, if it is a node of this cluster.
Admit = Callable[[dict[str, Any] | None], str | None]
_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Images:
    """What is served of a store; `wanted` tells which images a node is to run, as it names them."""

    store: ImageStore
    admit: Admit
    wanted: Callable[[str], Collection[str]]

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
        if reference not in self._wanted(request):
            return _text(HTTPStatus.FORBIDDEN, f"image {reference!r} is not for this node")
        signed = self.store.signed(reference)
        if signed is None:
            text = f"there is no image {reference!r} here yet: see haptera image list"
            return _text(HTTPStatus.NOT_FOUND, text)
        return Response(signed, media_type=_JSON)

    async def artefact(self, request: Request) -> Response:
        """The artefact of a digest, or the part of it that a Range names."""
        digest = request.path_params["digest"]
        due = map(self.store.manifest, self._wanted(request))
        if not any(one is not None and one.digest == digest for one in due):
            return _text(HTTPStatus.FORBIDDEN, f"{digest} is not for this node")
        place = self.store.artefact(digest)
        if not place.is_file():
            return _text(HTTPStatus.NOT_FOUND, f"{digest} is gone")
        return FileResponse(place, media_type=_BYTES)

    def _wanted(self, request: Request) -> Collection[str]:
        node = self.admit(request.scope.get("state", {}).get(CERTIFICATE))
        return () if node is None else self.wanted(node)


def _text(status: HTTPStatus, text: str) -> Response:
    return PlainTextResponse(text, status)
