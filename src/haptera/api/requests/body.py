"""What a request brings and an answer takes away: JSON, of bounded size and known shape."""

import asyncio
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from haptera.model.errors import Code, HapteraError, ParseError
from haptera.model.text import in_words

BODY_BYTES_MAX: Final = 1_048_576
BODY_WITHIN_S: Final = 10.0

Shape = TypeVar("Shape")


async def read_body(
    request: Request, shape: type[Shape], size_bytes_max: int = BODY_BYTES_MAX
) -> Shape:
    """The request's body in this shape.

    Raises:
        HapteraError: it is too long, too slow, no JSON, or of another shape.
    """
    body = await read_bytes(request, size_bytes_max)
    try:
        return msgspec.json.decode(body, type=shape)
    except (ValueError, RecursionError) as error:
        what = in_words(str(error)) or "no JSON"
        raise ParseError(what, where="the body", do="send JSON of the documented shape") from None


def as_json(
    value: object, *, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    return Response(
        msgspec.json.encode(value),
        status_code=status.value,
        headers=headers,
        media_type="application/json",
    )


async def read_bytes(request: Request, size_bytes_max: int) -> bytes:
    """The request's body.

    Raises:
        HapteraError: it is too long, or too slow.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > size_bytes_max:
                    raise HapteraError(
                        f"more than {size_bytes_max} bytes",
                        where="the body",
                        do="send less at once",
                        code=Code.BODY_TOO_LARGE,
                    )
    except (TimeoutError, ClientDisconnect):
        raise HapteraError(
            f"it did not arrive within {BODY_WITHIN_S:.0f} s",
            where="the body",
            do="send it at once",
            code=Code.BODY_TOO_SLOW,
        ) from None
    return bytes(body)
