"""The rounds of one sampler on one entity: their times, and the values that they report."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from zlib import crc32

from haptera.model.entity import EntityId
from haptera.model.errors import DeclarationError
from haptera.model.parts import Sampler
from haptera.model.reading import Reading, Series, fitting, split_series

# The result of a sampler: each number by its reading or its series; None is no number.
Measured = Mapping[Reading | Series, float | None]


async def rounds(
    sampler: Sampler,
    phase_s: float,
    measure: Callable[[], Awaitable[None]],
    places: asyncio.Semaphore,
    fail: Callable[[str], object],
) -> None:
    """Measure every so often until cancelled, on a beat of its own, while there are places.

    A round that takes too long is ended, and `fail` gets the words; one that is missed is left out.
    """
    loop = asyncio.get_running_loop()
    every_s, within_s = sampler.every_ms / 1_000, sampler.within_ms / 1_000
    due = loop.time() + phase_s
    while True:
        await asyncio.sleep(due - loop.time())
        async with places:
            try:
                async with asyncio.timeout(within_s):
                    await measure()
            except TimeoutError:
                fail(f"{sampler.path} did not end within {within_s:g} s")
        due += every_s * (1 + max(0, (loop.time() - due) // every_s))


def phase(sampler: Sampler, entity: EntityId) -> float:
    """The offset of an entity in the sampler's period, in seconds; it spreads a fleet out."""
    return crc32(str(entity).encode()) % sampler.every_ms / 1_000


def measured_values(sampler: Sampler, measured: Measured) -> dict[Series, float]:
    """The values to report: declared numbers within their range.

    Raises:
        HapteraError: the sampler measured what it does not declare.
    """
    declared = {one.name: one for one in sampler.readings}
    values: dict[Series, float] = {}
    for key, value in measured.items():
        series = key.series() if isinstance(key, Reading) else key
        named = split_series(series)
        if named is None or named[0] not in declared:
            raise DeclarationError(
                f"{sampler.path} measured {series!r}, which it does not declare",
                do="name its reading in `sampler`",
            )
        if value is not None:
            values[series] = float(value)
    return fitting(declared, values)
