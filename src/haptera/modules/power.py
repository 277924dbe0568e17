"""The parts that every module of BMCs has: one reading of the power, and the ways to change it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, Protocol, TypeVar

from haptera.kinds import node
from haptera.kinds.node import Agent, Busy, Netboot, Power
from haptera.modules.effects import DeviceError, NotYetError, insist
from haptera.sdk import ANY, EntityId, Module

PowerName = Literal["on", "off"]

# A reading is two calls at most, each with its retries: of a BMC that takes 5 s for an answer, too.
LOOK_S: Final = 30
COMMAND_S: Final = 40
# The longest wait for an operating system to shut down, and how often the power is read meanwhile.
GRACEFUL_S_MAX: Final = 60.0
GRACEFUL_READ_S: Final = 1.0
# How far apart two readings are that together show a change.
SETTLE_S: Final = 0.5
# Expensive, so that the planner takes it only where switch_off cannot be.
FORCE_COST: Final = 20

# What each BMC was last read to say, and said twice.
_believed: Final[dict[str, PowerName]] = {}


class UnsettledError(Exception):
    """Two readings in a row differ."""


class MachineBmc(Protocol):
    """The BMC of one node, in whatever language; one call at a time is under way."""

    @property
    def address(self) -> str: ...
    async def status(self) -> PowerName:
        """The power, as the BMC says it now."""

    async def boot_from_network_once(self) -> None:
        """Have the next start, and that one only, boot from the network."""

    async def power_on(self) -> None: ...
    async def ask_to_shut_down(self) -> bool:
        """Ask the operating system to shut down; False where this BMC cannot.

        Raises:
            NotYetError: it can, and has not asked.
            DeviceError: nobody knows whether it has.
        """

    async def force_off(self) -> None: ...
    @property
    def graceful_s(self) -> float: ...


AnyBmc = TypeVar("AnyBmc", bound=MachineBmc)


def check_graceful(seconds: float) -> None:
    """See that a setting `graceful_s` is in its limits.

    Raises:
        ValueError: it is not.
    """
    if not 0 <= seconds <= GRACEFUL_S_MAX:
        raise ValueError(f"graceful_s is between 0 and {GRACEFUL_S_MAX:g}")


# What was read of each of many, or what went wrong with it.
Statuses = Mapping[EntityId, PowerName | Exception]
Powers = Mapping[EntityId, Power | Exception]


def serve_power(
    module: Module[AnyBmc],
    look_many: Callable[[Mapping[EntityId, AnyBmc]], Coroutine[Any, Any, Powers]] | None = None,
) -> None:
    """Have the module serve the power of nodes, and start those that boot from the network.

    It is read of one machine at a time, or of many by `look_many`.
    """
    power = module.serves(node.power)
    agent = module.serves(node.agent)
    outcomes = (Power.OFF, Power.ON)
    if look_many is None:
        power.look(every_s=5, within_s=LOOK_S, outcomes=outcomes)(look_power)
    else:
        power.look(many=True, every_s=5, within_s=LOOK_S, outcomes=outcomes)(look_many)
    power.step(Power.OFF, Power.ON, within_s=COMMAND_S, excludes={node.boot_from: node.NETWORK})(
        switch_on
    )
    # A machine that boots from the network starts only while the boot servers answer it.
    module.step(
        power.goes(Power.OFF, Power.ON),
        agent.goes(ANY, Agent.UP, expected=True),
        within_s=COMMAND_S,
        requires={node.boot_from: node.NETWORK, node.netboot: Netboot.OFFERED},
    )(boot)
    power.step(
        Power.ON,
        Power.OFF,
        within_s=COMMAND_S + GRACEFUL_S_MAX,
        late_s=COMMAND_S,
        excludes={node.busy: Busy.BUSY},
        disruptive=True,
    )(switch_off)
    # For a node that cannot say any more that it is free.
    power.step(
        (Power.ON, Power.HUNG),
        Power.OFF,
        within_s=COMMAND_S,
        cost=FORCE_COST,
        disruptive=True,
    )(force_off)


async def look_power(bmc: MachineBmc) -> Power:
    """The power; a change counts once two readings agree on it.

    Raises:
        UnsettledError: they do not.
    """
    first = second = await bmc.status()
    if first != _believed.get(bmc.address):
        await asyncio.sleep(SETTLE_S)
        second = await bmc.status()
    found = _settled(bmc, first, second)
    if isinstance(found, Exception):
        raise found
    return found


async def look_powers(
    bmcs: Mapping[EntityId, AnyBmc],
    read: Callable[[Mapping[EntityId, AnyBmc]], Awaitable[Statuses]],
) -> Powers:
    """The same of many, by what reads them all: those that seem to have changed are read twice."""
    first = second = await read(bmcs)
    told = {one: bmc for one, bmc in bmcs.items() if isinstance(first[one], str)}
    changed = {one: bmc for one, bmc in told.items() if first[one] != _believed.get(bmc.address)}
    if changed:
        await asyncio.sleep(SETTLE_S)
        second = {**first, **await read(changed)}
    return {one: _settled(bmc, first[one], second[one]) for one, bmc in bmcs.items()}


def _settled(
    bmc: MachineBmc, first: PowerName | Exception, second: PowerName | Exception
) -> Power | Exception:
    """What two readings tell together."""
    if isinstance(first, Exception):
        return first
    if isinstance(second, Exception):
        return second
    if first != second:
        return UnsettledError(f"BMC at {bmc.address} says {first}, then {second}")
    _believed[bmc.address] = second
    return Power(second)


async def switch_on(bmc: MachineBmc) -> None:
    await insist(bmc.power_on)


async def boot(bmc: MachineBmc) -> None:
    await insist(bmc.boot_from_network_once)
    await insist(bmc.power_on)


async def switch_off(bmc: MachineBmc) -> None:
    """Ask the operating system to shut down.

    The power is cut if it has not in time, or if the BMC cannot ask it: not because it was busy.
    """
    ends_at = asyncio.get_running_loop().time() + bmc.graceful_s
    if await _asked_to_shut_down(bmc, ends_at):
        with suppress(TimeoutError):
            async with asyncio.timeout_at(ends_at):
                await _wait_until_off(bmc)
                return
    await insist(bmc.force_off)


async def force_off(bmc: MachineBmc) -> None:
    await insist(bmc.force_off)


async def _asked_to_shut_down(bmc: MachineBmc, ends_at: float) -> bool:
    """Whether its operating system was asked, or may have been; a busy BMC is asked again."""
    while True:
        try:
            return await bmc.ask_to_shut_down()
        except DeviceError:
            return True
        except NotYetError as busy:
            left_s = ends_at - asyncio.get_running_loop().time()
            if left_s <= 0:
                return False
            await asyncio.sleep(min(busy.again_s, left_s))


async def _wait_until_off(bmc: MachineBmc) -> None:
    """A change as any other: two readings agree on it; one that fails is none."""
    readings = 0
    while readings < 2:
        try:
            # A BMC tells nothing unasked.
            readings = readings + 1 if await bmc.status() == "off" else 0
        except (DeviceError, NotYetError):
            readings = 0
        await asyncio.sleep(SETTLE_S if readings else GRACEFUL_READ_S)
