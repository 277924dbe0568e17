"""Small controllers, good and bad, for the tests of controllers' processes."""

import asyncio
from typing import Any

from haptera.sdk import Cluster, Controller

plain = Controller("plain", settings=dict)
rubbish = Controller("rubbish", settings=dict)
fails = Controller("fails", settings=dict)
returns = Controller("returns", settings=dict)
counted = Controller("counted", settings=dict[str, int])
no_controller = object()


@plain.run
async def keep_on(cluster: Cluster[dict[str, Any]]) -> None:
    async for changes in cluster.watch(kinds=["node"]):
        await cluster.write({name: {"power": "on"} for name in changes.now})


@rubbish.run
async def say_rubbish(cluster: Cluster[dict[str, Any]]) -> None:
    cluster._send({"op": "switch everything off", "id": 1})
    await asyncio.Event().wait()


@fails.run
async def fail(cluster: Cluster[dict[str, Any]]) -> None:
    await cluster.write({"node:n2": {"power": "off"}})


@returns.run
async def do_nothing(cluster: Cluster[dict[str, Any]]) -> None:
    return


@counted.run
async def count(cluster: Cluster[dict[str, int]]) -> None:
    await asyncio.Event().wait()
