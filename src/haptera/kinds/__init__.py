"""The kinds that there are: haptera's own, those of packages, and those that a site declares."""

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
from haptera.kinds.rules import budget, freeze, health_rule, health_score, policy, power_cap
from haptera.model.declared.schema import Kind
from haptera.model.errors import DuplicateError


class Kinds(Mapping[str, Kind]):
    """Kinds by their names. What packages bring is looked for where it matters, and once.

    Raises:
        HapteraError: when that is, for whatever a package brings that is wrong.
    """

    def __init__(self, bundled: Mapping[str, Kind]) -> None:
        self.bundled = bundled
        self.declared: Mapping[str, Kind] = {}
        self._all: Mapping[str, Kind] | None = None

    def declare(self, kinds: Mapping[str, Kind]) -> None:
        """Have the kinds of a site, instead of those of the site that was read before."""
        self.declared, self._all = dict(kinds), None

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
            brought = brought_kinds(self.bundled)
            if twice := sorted(brought.keys() & self.declared):
                what = f"kind {twice[0]} comes with a package"
                raise DuplicateError(what, where="kinds of the site", do="give it another name")
            own = {node.kind.name: node_kind()}
            self._all = {**self.bundled, **own, **brought, **self.declared}
        return self._all


_BUNDLED: Final = (
    *(node, service, module, freeze, policy, budget, image, system, roll),
    *(group, replica, lease),
    *(pool, instance, backend),
    *(health, health_rule, health_score, power_cap),
)
KINDS: Final = Kinds({one.kind.name: one.kind for one in _BUNDLED})
