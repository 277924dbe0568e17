"""One call of the engine: its time, its effects, and what was touched."""

from dataclasses import dataclass, field

from haptera.core.state.allowance import TurnAllowance
from haptera.model.effects import Effect
from haptera.model.entity import EntityId


@dataclass(slots=True)
class Turn:
    """`dirty` entities are decided on again as soon as there is time; `changed` ones are published.

    Of those that are `wanted` something else is desired. Where `all_due`, a module changed, or a
    freeze of very many, and all are decided on again at leisure.
    """

    now: int
    effects: list[Effect] = field(default_factory=list)
    dirty: set[EntityId] = field(default_factory=set)
    changed: set[EntityId] = field(default_factory=set)
    wanted: set[EntityId] = field(default_factory=set)
    all_due: bool = False
    allowance: TurnAllowance = field(default_factory=TurnAllowance)

    def begin(self, now: int) -> None:
        """The call begins; what was spent before it is not its own."""
        self.now, self.allowance = now, TurnAllowance()

    def touch(self, entity: EntityId) -> None:
        """Something was learnt of this entity, or is desired of it: decide again, and tell."""
        self.dirty.add(entity)
        self.changed.add(entity)

    def mark_desired(self, entity: EntityId) -> None:
        """As `touch`: something is desired of it that it has not been measured by yet."""
        self.touch(entity)
        self.wanted.add(entity)
