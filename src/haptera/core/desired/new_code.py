"""The right to change code: a field that declares to be code takes more than to write."""

from typing import Any

import msgspec

from haptera.core.modules.catalog import Catalog
from haptera.core.state.table import EntityTable
from haptera.kinds import group, module, replica
from haptera.kinds.group import code_key, numbered
from haptera.model.changes import Author, Change, Declare, SetDesired
from haptera.model.declared.meaning import new_code
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId
from haptera.model.token_scope import Scope

Values = dict[str, str | int]


class NewCode:
    """What changes of desired state would have run that is not what runs there now."""

    def __init__(self, table: EntityTable, catalog: Catalog) -> None:
        self._table = table
        self._catalog = catalog

    def refusal(self, change: Change, author: Author) -> str | None:
        """Why its author may not make this change; the field and the scope that it takes."""
        match change:
            case SetDesired(entity, module.settings.name, value) if entity.kind == module.kind.name:
                found = self._settings(entity, str(value))
            case SetDesired(entity, name, value):
                found = self._plain(entity, name, value)
            case Declare(entity, attributes):
                found = self._attribute(entity, attributes)
            case _:
                return None
        if found is None:
            return None
        scope = scope_of(self._catalog.kinds[entity.kind], entity)
        if author.limited and entity.node is None:
            do = "that takes a token without a limit"
        elif not author.may.includes(scope):
            do = f"that takes a token of scope {scope}, and {author.who}'s allows {author.may}"
        else:
            return None
        return f"{entity}: {found}: {do}"

    def _plain(self, entity: EntityId, name: str, value: str | int) -> str | None:
        plain = self._catalog.kinds[entity.kind].plain_named(name)
        if plain is None or plain.meaning is None or value == self._desired(entity).get(name):
            return None
        if entity.kind == replica.kind.name and self._given_to_group(entity, name) == value:
            return None  # Who gave it to the group gave it to all replicas of that version.
        return f"{name} is {plain.meaning}"

    def _given_to_group(self, entity: EntityId, name: str) -> str | int | None:
        """The code that a replica's group has for the version that it is of."""
        of, rank = numbered(entity.name)
        return self._desired(EntityId(group.kind.name, of, None)).get(code_key(name, rank))

    def _attribute(self, entity: EntityId, attributes: dict[str, str]) -> str | None:
        row = self._table.get(entity)
        held = {} if row is None else row.desired.attributes
        for one in self._catalog.kinds[entity.kind].attributes:
            given = attributes.get(one.name)
            if one.meaning is not None and given not in (None, held.get(one.name)):
                return f"{one.name} is {one.meaning}"
        return None

    def _settings(self, entity: EntityId, text: str) -> str | None:
        manifest = self._catalog.manifests.get(entity.name)
        declared = None if manifest is None else manifest.settings
        before, after = (
            msgspec.json.decode(str(one), type=dict[str, Any])
            for one in (self._desired(entity).get(module.settings.name, "{}"), text)
        )
        for name in new_code(declared, before, after):
            if declared is None:
                return f"the setting {name!r} may be code, for {entity.name} declares no settings"
            return f"the setting {name!r} is code"
        return None

    def _desired(self, entity: EntityId) -> Values:
        row = self._table.get(entity)
        return {} if row is None else {k: one.value for k, one in row.desired.values.items()}


def scope_of(kind: Kind, entity: EntityId) -> Scope:
    """What it takes to change code of an entity: it runs on a node, or as the parent."""
    return Scope.EXEC if entity.node is not None or kind.on_nodes else Scope.ADMIN
