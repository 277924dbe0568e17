"""Changes of desired state on their way to be durable: nothing counts before it is written."""

from collections import deque
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Final

from haptera.core.desired.policies import Policies
from haptera.core.desired.proposal_validation import Checked, Checks, ProposalRefusal
from haptera.core.modules.catalog import Catalog
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.model.changes import Author, Change
from haptera.model.effects import Reply, Write
from haptera.model.entity import EntityId
from haptera.model.events import Proposed, Unwritten
from haptera.model.intent import Intent

# Changes taken over at once: some 3 ms.
TAKEN_OVER_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class _Writing:
    """Changes on their way; `asker` is the ticket of who waits for a reply, if anybody does."""

    changes: tuple[Change, ...]
    asker: int | None


@dataclass(frozen=True, slots=True)
class _Durable:
    """Changes that are written, with their revisions; some may be replaced by now."""

    changes: deque[tuple[int, Change]]
    asker: int | None
    revision: int


class Proposals:
    """Writes under way by ticket: proposals of people and programs, and intents of entities."""

    def __init__(self, table: EntityTable, catalog: Catalog, policies: Policies) -> None:
        self._table = table
        self.checks = Checks(table, catalog, policies, lambda: bool(self._durable))
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
        """Have it written once it is checked, in the order of proposals."""
        self.checks.ask(turn, event.changes, partial(self._checked, event), event.author)

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
        """Whether a turn had no time for all that is to be checked, or to be taken over."""
        return self.checks.waits or bool(self._durable)

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

    def _checked(self, event: Proposed, turn: Turn, found: Checked) -> None:
        """Have it written, unless it cannot be meant."""
        if isinstance(found, ProposalRefusal):
            turn.effects.append(Reply(event.ticket, None, found.text, found.cause))
        else:
            self._write(turn, _Writing(found, event.ticket), event.if_revision, event.author)

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
