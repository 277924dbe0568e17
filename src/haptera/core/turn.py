"""What one call of the engine gathers: the time, the effects, and what was touched."""

from dataclasses import dataclass, field

from haptera.model.effects import Effect
from haptera.model.entity import EntityId


@dataclass(slots=True)
class Turn:
    """`dirty` entities are decided on again before the turn ends; `changed` ones are published.

    Those in `due`, in this order, are decided on as soon as a turn has time for them.
    """

    now: int
    effects: list[Effect] = field(default_factory=list)
    dirty: set[EntityId] = field(default_factory=set)
    changed: set[EntityId] = field(default_factory=set)
    due: dict[EntityId, None] = field(default_factory=dict)

    def touch(self, entity: EntityId) -> None:
        """Something was learnt of this entity, or is desired of it: decide again, and tell."""
        self.dirty.add(entity)
        self.changed.add(entity)
