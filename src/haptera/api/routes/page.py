"""The status page: its files, read once at the start; they hold no state, so anybody may."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.requests.endpoint import Caller, Handler
from haptera.rest.endpoint import Endpoint

_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def served_page() -> Iterator[Handler]:
    static = files("haptera.web") / "static"
    for file in sorted(static.iterdir(), key=lambda one: one.name):
        path = "/" if file.name == "index.html" else f"/page/{file.name}"
        media_type = _TYPES[file.name.rpartition(".")[2]]
        yield _file(path, file.read_bytes(), media_type)


def _file(path: str, content: bytes, media_type: str) -> Handler:
    async def answer(_request: Request, _caller: Caller) -> Response:
        """A file of the status page."""
        return Response(content, media_type=media_type)

    return Handler(Endpoint("GET", path, None, str, media_type=media_type), answer)
