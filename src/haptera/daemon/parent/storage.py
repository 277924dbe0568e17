"""The folder of a parent: its keys, its state file, and the feed for standbys and parents below."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final
from uuid import UUID

from haptera.daemon.settings import ParentSettings
from haptera.model.events import Event
from haptera.runtime import clock
from haptera.runtime.identity.pki import open_authority
from haptera.runtime.processes.secrets import SecretStore
from haptera.runtime.store.feed import Feed
from haptera.runtime.store.store import STATE_FILE, Store

HISTORY_FOLDER: Final = "history"


class Storage:
    """Open from its making on. Needs a running loop, in which it delivers what was written."""

    def __init__(
        self, settings: ParentSettings, deliver: Callable[[Iterable[Event]], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        cluster = None if settings.cluster is None else UUID(settings.cluster)
        self.home = Path(settings.directory)
        self.history = self.home / HISTORY_FOLDER
        self.secrets = SecretStore.open(self.home)
        sealer = self.secrets.sealer
        self.authority = open_authority(self.home, clock.wall_s(), cluster, sealer)

        def shipped(batch: bytes) -> None:
            loop.call_soon_threadsafe(self.feed.add, batch)

        def answered(done: Event) -> None:
            # After the feed has what was written: it may hold the answer.
            loop.call_soon_threadsafe(self.feed.answer, lambda: deliver([done]))

        self.feed = Feed(loop)
        self.store = Store.open(
            self.home / STATE_FILE, sealer, deliver=answered, wall_s=clock.wall_s, shipped=shipped
        )
