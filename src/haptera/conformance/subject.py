"""What is checked, and with what: where the module is, its settings, the entity it is asked of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from haptera.kinds import KINDS, node
from haptera.model.effects import Call, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.parts import Part
from haptera.runtime.processes.places import ModulePlace

# The entity that a module is asked of where nothing else is said.
NODE: Final = "n01"
ENTITY: Final = "checked"


@dataclass(frozen=True, slots=True)
class CheckedModule:
    """A module to check. With `acts` its steps are taken, and its looks must find something.

    `attributes` are added to those that a part requires. Each of `secrets` names a setting, whose
    value is made up. A sign of life is waited for no longer than `patience_s`.
    """

    place: ModulePlace
    settings: Mapping[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    entity: EntityId | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str | int] = field(default_factory=dict)
    acts: bool = False
    patience_s: float = 5.0

    def call(
        self,
        number: int,
        work: Work,
        module: str,
        part: Part,
        deadline: int | None,
        *,
        other: int | None = None,
    ) -> Call:
        """The call of a part, of an entity that it may be taken of, or of another beside that."""
        entity = self._entity(part.kind)
        if other is not None:
            name = f"{entity.name}-{other}"
            node_of = name if entity.name == entity.node else entity.node
            entity = EntityId(entity.kind, name, node_of)
        return Call(
            id=number,
            work=work,
            module=module,
            part=part.name,
            entity=entity,
            attributes={**_required(part), **self.attributes},
            values=dict(self.values),
            digest="5eed",
            deadline_at=deadline,
            intent="checked-1" if work is Work.STEP else None,
        )

    def gate_call(self, number: int, work: Work, module: str, deadline: int) -> Call:
        entity = self._entity(node.kind.name)
        given = dict(self.attributes)
        return Call(number, work, module, work.value, entity, given, {}, "", deadline)

    def _entity(self, kind: str) -> EntityId:
        if self.entity is not None and self.entity.kind == kind:
            return self.entity
        return node_id(NODE) if kind == node.kind.name else EntityId(kind, ENTITY, NODE)


def _required(part: Part) -> dict[str, str]:
    """Attributes that the part requires, each with the first value that will do."""
    return {
        one.name: one.values[0]
        for one in part.requires
        if _is_attribute(part.kind, one.name) and one.values
    }


def _is_attribute(kind: str, name: str) -> bool:
    of, _, bare = name.partition(".")
    places = (KINDS.get(kind), name), (KINDS.get(of), bare)
    return any(there is not None and there.attribute(one) for there, one in places)
