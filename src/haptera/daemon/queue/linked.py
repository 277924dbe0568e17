"""A controller in the parent's own process: the same words as over a link, and no link."""

import asyncio
from typing import Any

from haptera.runtime.clock import wall_s
from haptera.runtime.processes.control import Control, Source
from haptera.sdk import Cluster
from haptera.wire.control import Frame


def linked(name: str, source: Source) -> tuple[Cluster[None], Control]:
    """Both ends of a controller's link; what it asks is answered while `Control.run` runs."""

    class Link:
        def send(self, frame: Frame) -> None:
            loop.call_soon(cluster.take, frame)

        def hold(self) -> None:
            """Nothing: it waits for each answer."""

        def go_on(self) -> None: ...

    def asked(frame: Frame) -> None:
        loop.call_soon(control.take, frame)

    loop = asyncio.get_running_loop()
    cluster: Cluster[Any] = Cluster(name, None, asked, wall_s)
    control = Control(name, source, Link())
    return cluster, control
