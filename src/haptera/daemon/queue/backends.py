"""Has each declared backend hold jobs, for as long as it is declared as it is."""

import asyncio
import logging
import os
from functools import partial
from typing import Final

from haptera.daemon.queue.bounds import job_user
from haptera.daemon.queue.linked import linked
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.kinds import backend
from haptera.kinds.brought import imported
from haptera.runtime.clock import now_ns
from haptera.runtime.processes.confined import confined_words
from haptera.runtime.processes.control import Source
from haptera.sdk.backends import BackendTerms
from haptera.sdk.backends.holder import BackendHolder
from haptera.sdk.boundary import Boundary

NAME: Final = "backends"
AGAIN_S: Final = 2.0

_log = logging.getLogger(__name__)

Terms = dict[str, str]


class Backends:
    """All backends; `tag` is this cluster's, `directory` is where they may keep a file.

    What they run, and what that loads, reaches nothing that is `hidden`.
    """

    def __init__(
        self,
        source: Source,
        jobs: ParentQueue,
        tag: str,
        hidden: tuple[str, ...],
    ) -> None:
        self._hidden = hidden
        self._source = source
        self._jobs = jobs
        self._tag = tag
        self._running: dict[str, tuple[Terms, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Run each until cancelled."""
        cluster, control = linked(NAME, self._source)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(control.run())
            async for changes in cluster.watch(kinds=[backend.kind.name]):
                wanted = {
                    view.name: {name: str(one.value) for name, one in view.desired.items()}
                    for view in changes.now.values()
                    if backend.engine.name in view.desired
                }
                for name, (terms, task) in list(self._running.items()):
                    if wanted.get(name) != terms:
                        task.cancel()
                        del self._running[name]
                for name in sorted(wanted.keys() - self._running.keys()):
                    task = tasks.create_task(self._keep(name, wanted[name]))
                    self._running[name] = wanted[name], task

    async def _keep(self, name: str, terms: Terms) -> None:
        """Run one; what ends it is its own, and it begins anew from what its engine has."""
        while True:
            with Boundary(f"backend {name}"):
                await self._backend(name, terms).run()
            await asyncio.sleep(AGAIN_S)

    def _backend(self, name: str, terms: Terms) -> BackendHolder:
        _log.info("backend %s: %s", name, terms)
        conf, output = terms.get(backend.conf.name), terms.get(backend.output.name)
        lesser = partial(_lesser, self._hidden, terms.get(backend.user.name))
        make = imported(backend.engine_named(terms[backend.engine.name]))
        made = make(BackendTerms(conf, output, lesser))
        return BackendHolder(name, self._tag, made, self._jobs, f"{os.getpid()}-{now_ns()}")


def _lesser(hidden: tuple[str, ...], user: str | None, reads: tuple[str, ...]) -> tuple[str, ...]:
    """The prefix that runs a command as this user, or as one without rights."""
    return confined_words(hidden, job_user(user), reads)
