"""A controller's process: its function runs, and what it asks of the daemon goes over a link."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any

from haptera.sdk.controller import Cluster, Controller
from haptera.sdk.link import Frame, frames_of
from haptera.wire.ipc import encode_frame


async def serve_controller(
    controller: Controller[Any],
    name: str,
    link: socket.socket,
    given: Mapping[str, object],
    wall_s: Callable[[], float],
) -> None:
    """Run a controller under this name until its link is closed, or its function is over.

    Raises:
        HapteraError: its settings do not fit, or what came over the link means nothing.
    """
    settings = controller.settings(given)
    reader, writer = await asyncio.open_connection(sock=link)

    def send(frame: Frame) -> None:
        if not writer.is_closing():
            writer.write(encode_frame(frame))

    def take(frame: Frame) -> None:
        if frame.get("op") == "ping":
            send({"op": "pong"})
        else:
            cluster.take(frame)

    cluster = Cluster(name, settings, send, wall_s)
    try:
        send({"op": "ready", "module": name, "version": controller.version})
        working = asyncio.create_task(controller.function(cluster))
        hearing = asyncio.create_task(_hear(reader, take))
        await asyncio.wait({working, hearing}, return_when=asyncio.FIRST_COMPLETED)
        over = hearing if hearing.done() else working
        other = working if over is hearing else hearing
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        over.result()
    finally:
        writer.close()


async def _hear(reader: asyncio.StreamReader, take: Callable[[Frame], None]) -> None:
    async for frame in frames_of(reader):
        take(frame)
