"""What the store should do, as plainly as it can be said: dicts, copied before each write."""

import copy

from haptera.model.changes import (
    CloseIntent,
    Declare,
    Desired,
    OpenIntent,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.effects import Write
from haptera.model.entity import EntityId
from haptera.model.intent import Intent


class PlainStore:
    """UUIDs are left out: they are made by chance."""

    def __init__(self) -> None:
        self.revision = 0
        self.desired_revision = 0
        self.entities: dict[EntityId, StoredEntity] = {}
        self.intents: dict[str, Intent] = {}
        self.nodes: set[str] = set()

    def write(self, write: Write) -> bool:
        """Whether it was done; if not, nothing is changed."""
        draft = copy.deepcopy(self)
        fits = write.if_revision is None or (
            self.desired_revision <= write.if_revision <= self.revision
        )
        if fits and all(draft._apply(change) for change in write.changes):
            self.__dict__ = draft.__dict__
            return True
        return False

    def _apply(self, change: object) -> bool:
        self.revision += 1
        if isinstance(change, OpenIntent | CloseIntent):
            return self._apply_intent(change)
        self.desired_revision = self.revision
        match change:
            case Declare(entity, attributes, owner):
                before = self.entities.get(entity)
                desired = {} if before is None else before.desired
                self.entities[entity] = StoredEntity(
                    entity, attributes, owner, desired, self.revision
                )
                if entity.kind == "node":
                    self.nodes.add(entity.name)
            case Undeclare(entity):
                self.entities.pop(entity, None)
            case SetDesired(entity, name, value, owner):
                if entity not in self.entities:
                    return False
                self.entities[entity].desired[name] = Desired(value, owner)
                self.entities[entity].revision = self.revision
            case UnsetDesired(entity, name) if entity in self.entities:
                self.entities[entity].desired.pop(name, None)
                self.entities[entity].revision = self.revision
        return True

    def _apply_intent(self, change: OpenIntent | CloseIntent) -> bool:
        if isinstance(change, CloseIntent):
            self.intents.pop(change.id, None)
            return True
        intent = change.intent
        bound = not intent.enrols or intent.entity.node in self.nodes
        fits = bound and intent.id not in self.intents
        if fits:
            self.intents[intent.id] = intent
        return fits

    def values(self) -> tuple[int, list[StoredEntity], list[Intent]]:
        entities = sorted(self.entities.values(), key=lambda one: str(one.entity))
        return self.revision, entities, list(self.intents.values())
