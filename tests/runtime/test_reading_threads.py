"""What requests have read holds up nothing that keeps the parent the parent."""

import asyncio
import threading
from pathlib import Path

import haptera
from haptera.runtime.reading_threads import READERS_MAX, in_reading_thread

WITHIN_S = 20.0
SOURCE = Path(haptera.__file__).parent
# A site is read for each token one after the other, and only by who may write or compare it.
BOUNDED = {"sites.py": 2}


def test_however_much_is_read_the_threads_of_the_loop_are_free() -> None:
    gate, begun = threading.Event(), threading.Semaphore(0)

    def read(number: int) -> int:
        begun.release()
        assert gate.wait(WITHIN_S)
        return number

    async def run() -> list[int]:
        reads = [asyncio.create_task(in_reading_thread(read, number)) for number in range(64)]

        async def renewed(wait_s: float) -> bool:
            in_time = asyncio.to_thread(begun.acquire, timeout=wait_s)
            return await asyncio.wait_for(in_time, WITHIN_S)

        try:
            for _ in range(READERS_MAX):
                assert await renewed(WITHIN_S)
            assert not await renewed(0), "more are read than there is room"
        finally:
            gate.set()
        return await asyncio.gather(*reads)

    assert asyncio.run(run()) == [*range(64)]


def test_what_a_request_reads_is_read_in_threads_of_its_own() -> None:
    served = [*(SOURCE / "api").rglob("*.py"), *(SOURCE / "daemon/backend").rglob("*.py")]
    found = {path.name: path.read_text().count("asyncio.to_thread(") for path in served}
    assert {name: count for name, count in found.items() if count} == BOUNDED
