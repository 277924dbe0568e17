"""The kinds that there are: those that come with haptera, and those that packages bring."""

from collections.abc import Iterator, Mapping
from typing import Final

from haptera.kinds import (
    backend,
    group,
    health,
    image,
    instance,
    lease,
    module,
    node,
    pool,
    replica,
    roll,
    service,
    system,
)
from haptera.kinds.brought import brought_kinds
from haptera.kinds.extensions import node_kind
from haptera.kinds.rules import budget, freeze, health_rule, policy
from haptera.model.declared.schema import Kind


class Kinds(Mapping[str, Kind]):
    """Kinds by their names. What packages bring is looked for where it matters, and once.

    Raises:
        HapteraError: when that is, for whatever a package brings that is wrong.
    """

    def __init__(self, bundled: Mapping[str, Kind]) -> None:
        self.bundled = bundled
        self._all: Mapping[str, Kind] | None = None

    def __getitem__(self, name: str) -> Kind:
        if name == node.kind.name:
            return node_kind()
        kind = self.bundled.get(name)
        return self._known()[name] if kind is None else kind

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def _known(self) -> Mapping[str, Kind]:
        if self._all is None:
            self._all = {
                **self.bundled,
                node.kind.name: node_kind(),
                **brought_kinds(self.bundled),
            }
        return self._all


_BUNDLED: Final = (
    *(node, service, module, freeze, policy, budget, image, system, roll),
    *(group, replica, lease),
    *(pool, instance, backend),
    *(health, health_rule),
)
KINDS: Final = Kinds({one.kind.name: one.kind for one in _BUNDLED})
