"""The queue of jobs as the API has it, in memory only."""

import asyncio

from haptera.queue.entry import Moment, StoredQueue
from haptera.queue.news import JobNews
from haptera.queue.queue import JobQueue
from haptera.queue.reason import why

NOW = Moment(0, 1_000.0)


class MemoryDesk:
    """What is changed is changed at once; nobody ever asks for work."""

    def __init__(self):
        self.queue = JobQueue(StoredQueue(), NOW)
        self.turn = 0
        self.news = JobNews([])
        self.pools = {}
        self._changed = asyncio.Event()

    async def change(self, seen):
        while self.turn == seen:
            await self._changed.wait()
        return self.turn

    async def submit(self, one):
        return self.noted(self.queue.submit(one, NOW))

    async def cancel(self, keys, reason):
        return self.noted([self.queue.cancel(key, reason, NOW) for key in keys])

    async def prioritize(self, key, priority):
        return self.noted([self.queue.prioritize(key, priority)])[0]

    def why(self, job):
        return why(self.queue, job, NOW.wall_s)

    def noted(self, jobs):
        for job in jobs:
            self.news.changed(job.id)
        self.turn += 1
        self._changed.set()
        self._changed = asyncio.Event()
        return jobs
