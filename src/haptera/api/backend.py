"""What the API needs of the process that it runs in."""

from collections.abc import Sequence
from typing import Protocol

from haptera.model.changes import Change, StoredEntity
from haptera.model.effects import Reply
from haptera.model.entity import EntityId
from haptera.model.views import EntityView, Summary
from haptera.runtime.tokens import Scope


class Subscription(Protocol):
    """What changed, from the moment of subscribing on, in a bounded queue."""

    @property
    def closed(self) -> bool:
        """Whether the queue was overrun: something is missing, and nothing more will come."""

    async def next(self) -> tuple[int, tuple[EntityId, ...]]:
        """The next change: its number, greater than all before, and the entities it changed."""


class Backend(Protocol):
    """Questions are answered at once, from memory; `propose` and `preview` take their time."""

    @property
    def epoch(self) -> int: ...

    def revision(self) -> int: ...

    def entities(self, kind: str | None, nodes: frozenset[str] | None) -> list[EntityView]: ...

    def entity(self, entity: EntityId) -> EntityView | None: ...

    def summary(self) -> Summary: ...

    def stored(self) -> Sequence[StoredEntity]:
        """The desired layer; handed to another thread, so nothing in it may change later."""

    async def propose(self, changes: tuple[Change, ...], if_revision: int | None) -> Reply: ...

    async def preview(self, changes: tuple[Change, ...]) -> list[EntityView]:
        """All entities as they would be with these changes; nothing is written."""

    def ask(self, entity: EntityId) -> None:
        """Try this entity again now."""

    def subscribe(self) -> Subscription: ...

    def check_token(self, text: str) -> tuple[str, Scope] | None:
        """Whose token this is and what it allows; None where it is none, or no longer."""
