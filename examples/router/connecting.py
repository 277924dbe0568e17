"""Sessions with a router, from an address of ours that it knows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from ipaddress import IPv4Address
from typing import Final

from bgp.session import PORT, Session, Speaker, established

AS_NUMBER: Final = 65_001
CLUSTER_ID: Final = "10.0.0.99"
# Who the shims are, to all routers of the system.
REFLECTOR: Final = Speaker(AS_NUMBER, IPv4Address(CLUSTER_ID).packed, AS_NUMBER)
RETRY_S: Final = 0.2
CONNECT_WITHIN_S: Final = 5


@contextlib.asynccontextmanager
async def connected(speaker: Speaker, address: str, ours: str) -> AsyncIterator[Session]:
    """A session, within the block.

    Raises:
        SessionEndedError: the router refuses, or the session has ended.
        OSError: the router is not there.
    """
    host, _, port = address.partition(":")
    async with asyncio.timeout(CONNECT_WITHIN_S):
        reader, writer = await asyncio.open_connection(
            host, int(port or PORT), local_addr=(ours, 0)
        )
    async with established(speaker, reader, writer) as session:
        yield session
