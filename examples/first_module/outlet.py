"""The power of nodes that hang on a power strip, one outlet each."""

import asyncio

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module, Policy, Refused, Target


class Outlet:
    """One outlet, which answers a line of text with `ok …` or `no …` at the node's `bmc`."""

    def __init__(self, target: Target) -> None:
        self._host, _, self._port = target.attributes["bmc"].partition(":")

    async def ask(self, line: str) -> str:
        reader, writer = await asyncio.open_connection(self._host, int(self._port))
        try:
            writer.write(f"{line}\n".encode())
            answer = (await reader.readline()).decode().strip()
        finally:
            writer.close()
        word, _, text = answer.partition(" ")
        if word == "no":
            raise Refused(text)
        if word != "ok":
            raise ConnectionError(f"the strip answered {answer!r}")
        return text


PATIENT = Policy(3, backoff_ms=2_000, backoff_ms_max=60_000, cool_down_ms=600_000)

module = Module("outlet", connect=Outlet, where={node.platform: "outlet"}, context=PARENT)
power = module.serves(node.power)


@power.look(every_s=30, within_s=5, outcomes=(Power.OFF, Power.ON))
async def look(outlet: Outlet) -> Power:
    return Power(await outlet.ask("state"))


@power.step(Power.OFF, Power.ON, within_s=5, late_s=2, policy=PATIENT)
async def switch_on(outlet: Outlet) -> None:
    await outlet.ask("on")


@power.step(Power.ON, Power.OFF, within_s=5, late_s=2, disruptive=True)
async def switch_off(outlet: Outlet) -> None:
    await outlet.ask("off")
