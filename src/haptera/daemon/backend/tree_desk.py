"""The parents around this one: those that report to it, and those that follow its store."""

from haptera.daemon.tree.below import Below
from haptera.daemon.tree.replicas import Replicas
from haptera.model.answers.views import TreeView
from haptera.runtime.over_turns import over_turns
from haptera.runtime.store.store import Store


class ParentTree:
    """Reports come from below, and followers copy the store."""

    def __init__(self, store: Store, below: Below, replicas: Replicas) -> None:
        self._store = store
        self._below, self.report = below, below.take
        self._feed, self.replica = replicas.feed, replicas.tell

    async def view(self) -> TreeView:
        return TreeView(await over_turns(self._below.parents()), self._feed.lag)

    async def faults(self) -> list[str]:
        return [*self._store.faults(), *await over_turns(self._below.faults())]

    def durability(self) -> str:
        return self._feed.durability
