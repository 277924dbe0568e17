"""A client of the API, for programs: what there is to ask is in `calls`, either client asks it."""

from typing import TYPE_CHECKING

from haptera.client import calls
from haptera.client.access import Access, Found, find
from haptera.client.blocking import Client
from haptera.client.call import ApiAnswer, ApiCall
from haptera.client.errors import RefusedError, UnreachableError
from haptera.client.protocol import Arrived, Broken

if TYPE_CHECKING:
    from haptera.client.aio import AsyncClient

__all__ = [
    "Access",
    "ApiAnswer",
    "ApiCall",
    "Arrived",
    "AsyncClient",
    "Broken",
    "Client",
    "Found",
    "RefusedError",
    "UnreachableError",
    "calls",
    "find",
]


def __getattr__(name: str) -> object:
    """`AsyncClient`, once it is asked for: asyncio takes as long to import as all else here."""
    if name != "AsyncClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from haptera.client.aio import AsyncClient

    return AsyncClient
