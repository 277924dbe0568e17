"""The queue of jobs as the API has it, in memory only."""

import asyncio

from haptera.queue.entry import Moment, StoredQueue
from haptera.queue.queue import JobQueue
from haptera.queue.reason import why

NOW = Moment(0, 1_000.0)


class MemoryDesk:
    """What is changed is changed at once; nobody ever asks for work."""

    def __init__(self):
        self.queue = JobQueue(StoredQueue(), NOW)
        self.turn = 0
        self.pools = {}

    async def change(self, seen):
        while self.turn == seen:
            await asyncio.Event().wait()
        return self.turn

    async def submit(self, one):
        return self.queue.submit(one, NOW)

    async def cancel(self, key, reason):
        return self.queue.cancel(key, reason, NOW)

    async def prioritize(self, key, priority):
        return self.queue.prioritize(key, priority)

    async def set_duty(self, name, duty):
        self.queue.set_duty(name, duty)

    def why(self, job):
        return why(self.queue, job, NOW.wall_s)
