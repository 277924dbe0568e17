"""What modules were asked and have not answered yet; an answer to anything else is stale."""

from collections.abc import Callable
from dataclasses import dataclass

from haptera.core.catalog import attributes
from haptera.core.limits import ANSWER_GRACE_NS
from haptera.core.rows.row import Row
from haptera.core.timers import Timers
from haptera.core.turn import Turn
from haptera.model.effects import Call, Cancel, Work
from haptera.model.entity import EntityId
from haptera.model.intent import Intent
from haptera.model.parts import Part


@dataclass(frozen=True, slots=True)
class Pending:
    """One call under way."""

    entity: EntityId
    part: Part
    work: Work
    process: int


class Calls:
    """Calls by id; an id is never used again within a process.

    `serving` tells which process of a module new calls go to.
    """

    def __init__(self, timers: Timers, serving: Callable[[str], int]) -> None:
        self._timers = timers
        self._serving = serving
        self._pending: dict[int, Pending] = {}
        self._count = 0

    def ask(
        self,
        turn: Turn,
        row: Row,
        node: Row | None,
        part: Part,
        work: Work,
        *,
        deadline_at: int | None,
        intent: Intent | None = None,
    ) -> int:
        """Call the part's module; returns the call's id."""
        self._count += 1
        process = self._serving(part.module)
        self._pending[self._count] = Pending(row.id, part, work, process)
        if deadline_at is not None:
            self._timers.set(("call", self._count), deadline_at + ANSWER_GRACE_NS)
        turn.effects.append(
            Call(
                self._count,
                work,
                part.module,
                part.name,
                row.id,
                attributes(row, node),
                row.plain(),
                row.digest(),
                deadline_at,
                None if intent is None else intent.id,
                intent is not None and intent.enrols,
                process,
            )
        )
        return self._count

    def get(self, call: int) -> Pending | None:
        """The call under way, None where an answer to it is stale."""
        return self._pending.get(call)

    def take(self, call: int) -> Pending | None:
        """As `get`, and the call is under way no more."""
        self._timers.drop(("call", call))
        return self._pending.pop(call, None)

    def cancel(self, turn: Turn, call: int) -> None:
        pending = self.take(call)
        if pending is not None:
            turn.effects.append(Cancel(call, pending.part.module, pending.process))

    def of_process(self, module: str, process: int) -> list[int]:
        """The calls that a process of a module has under way."""
        return [
            call
            for call, one in self._pending.items()
            if one.part.module == module and one.process == process
        ]
