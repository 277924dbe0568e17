"""Changes of desired state on their way to be durable: nothing counts before it is written."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, Final

import msgspec

from haptera.core.catalog import Catalog
from haptera.core.policies import Policies
from haptera.core.rows.table import Table
from haptera.core.turn import Turn
from haptera.kinds import module
from haptera.model.changes import (
    Author,
    Cause,
    Change,
    Declare,
    SetDesired,
    Undeclare,
    UnsetDesired,
)
from haptera.model.desirable import check_desired
from haptera.model.effects import Reply, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Proposed, Unwritten
from haptera.model.intent import Intent
from haptera.model.secrets import SECRET_DO, open_secrets

_MODULE: Final = module.kind.name
# Changes taken over at once: some 3 ms.
TAKEN_OVER_MAX: Final = 500
# Values of which it is known whether they can be desired, while a proposal is gone through.
UNFIT_CACHED_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class _Writing:
    """Changes on their way; `asker` is the ticket of who waits for a reply, if anybody does."""

    changes: tuple[Change, ...]
    asker: int | None


@dataclass(frozen=True, slots=True)
class _Durable:
    """Changes that are written, with their revisions, of which some may be taken over by now."""

    changes: deque[tuple[int, Change]]
    asker: int | None
    revision: int


class Proposals:
    """Writes under way by ticket: proposals of people and programs, and intents of entities."""

    def __init__(self, table: Table, catalog: Catalog, policies: Policies) -> None:
        self._table = table
        self._catalog = catalog
        self._kinds = catalog.kinds
        self._policies = policies
        self._tickets = count(1)
        self._writing: dict[int, _Writing] = {}
        self._durable: deque[_Durable] = deque()
        self._intents: dict[int, Intent] = {}

    def ticket(self, intent: Intent | None) -> int:
        """A number for a write; its answer lets this intent go on, or nothing."""
        ticket = next(self._tickets)
        if intent is not None:
            self._intents[ticket] = intent
        return ticket

    def take_intent(self, ticket: int) -> Intent | None:
        """The intent that was written under this ticket; asked once."""
        return self._intents.pop(ticket, None)

    def propose(self, turn: Turn, event: Proposed) -> None:
        """Have it written, unless it cannot be meant."""
        if problem := self.problem(event.changes):
            turn.effects.append(Reply(event.ticket, None, *problem))
            return
        changes = self._declared(event.changes)
        self._write(turn, _Writing(changes, event.ticket), event.if_revision, event.author)

    def problem(self, changes: tuple[Change, ...]) -> tuple[str, Cause] | None:
        """Why these cannot be meant; None where they can."""
        if problem := self._astray(changes) or self._policies.problem(changes):
            return problem, Cause.INVALID
        if problem := self._open(changes):
            return problem, Cause.OPEN_SECRET
        return None

    def change(self, turn: Turn, *changes: Change) -> None:
        """Have written what follows from what is desired now; refused if that changes meanwhile."""
        self._write(turn, _Writing(changes, None), self._table.revision, None)

    def written(self, ticket: int, revision: int) -> bool:
        """It is durable: to be taken over; tells whether it is the next to be."""
        writing = self._writing.pop(ticket, None)
        if writing is not None:
            first = revision - len(writing.changes) + 1
            changes = deque(enumerate(writing.changes, first))
            self._durable.append(_Durable(changes, writing.asker, revision))
        return len(self._durable) == 1

    @property
    def waits(self) -> bool:
        """Whether something durable is still to be taken over."""
        return bool(self._durable)

    def take_over(self, turn: Turn) -> list[tuple[EntityId, int]]:
        """Some of what is durable, in its order; returns the changed entities with their revisions.

        Who waits for a reply has it after the last change.
        """
        taken: list[tuple[EntityId, int]] = []
        for _ in range(TAKEN_OVER_MAX):
            self._reply(turn)
            if not self._durable:
                break
            number, change = self._durable[0].changes.popleft()
            if (entity := self._table.apply(change, number)) is not None:
                taken.append((entity, number))
        self._reply(turn)
        return taken

    def _reply(self, turn: Turn) -> None:
        """Answer those of whose changes nothing is left to be taken over."""
        while self._durable and not self._durable[0].changes:
            done = self._durable.popleft()
            if done.asker is not None:
                turn.effects.append(Reply(done.asker, done.revision))

    def unwritten(self, turn: Turn, refused: Unwritten) -> None:
        writing = self._writing.pop(refused.ticket, None)
        if writing is not None and writing.asker is not None:
            turn.effects.append(Reply(writing.asker, None, refused.text, refused.cause))

    def _write(
        self, turn: Turn, writing: _Writing, if_revision: int | None, author: Author | None
    ) -> None:
        ticket = self.ticket(None)
        self._writing[ticket] = writing
        turn.effects.append(Write(ticket, writing.changes, if_revision, author))

    def _declared(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """The changes, each resident that something is desired of for the first time declared."""
        declared = {change.entity for change in changes if isinstance(change, Declare)}
        whole: list[Change] = []
        for change in changes:
            if isinstance(change, SetDesired) and change.entity not in declared:
                row = self._table.get(change.entity)
                if row is not None and not row.declared:
                    whole.append(Declare(change.entity, {}, change.owner))
                declared.add(change.entity)
            whole.append(change)
        return tuple(whole)

    def _astray(self, changes: tuple[Change, ...]) -> str | None:
        """What in a proposal names something that is not there; its order counts."""
        added: set[EntityId] = set()
        unfit = lru_cache(UNFIT_CACHED_MAX)(self._unfit)  # Many are given the same.
        for change in changes:
            match change:
                case Declare(entity):
                    if entity.kind not in self._kinds:
                        return f"{entity}: there is no kind {entity.kind!r}"
                    added.add(entity)
                    if entity.node is not None and not self._is_here(node_id(entity.node), added):
                        return f"{entity}: node {entity.node} is not declared"
                case SetDesired(entity, name, value):
                    if not self._is_here(entity, added):
                        return f"{entity} is not declared"
                    if (problem := unfit(entity.kind, name, value)) is not None:
                        return f"{entity}: {problem}"
                case UnsetDesired(entity) | Undeclare(entity):
                    if not self._is_here(entity, added):
                        return f"{entity} is not declared"
                case _:
                    return "only desired state can be proposed"
        return None

    def _open(self, changes: tuple[Change, ...]) -> str | None:
        """Which secret of a module is in a proposal itself, not by its name."""
        for change in changes:
            match change:
                case SetDesired(entity, module.settings.name, value) if entity.kind == _MODULE:
                    manifest = self._catalog.manifests.get(entity.name)
                    declared = () if manifest is None else manifest.settings or ()
                    given = msgspec.json.decode(str(value), type=dict[str, Any])
                    for name in open_secrets(declared, given):
                        return f"{entity}: the setting {name!r} is a secret; {SECRET_DO}"
                case _:
                    pass
        return None

    def _unfit(self, kind: str, name: str, value: str | int) -> str | None:
        """Why this cannot be desired of a kind."""
        try:
            check_desired(self._kinds[kind], name, value)
        except HapteraError as error:
            return str(error)
        return None

    def _is_here(self, entity: EntityId, added: Collection[EntityId]) -> bool:
        return entity in added or self._table.get(entity) is not None
