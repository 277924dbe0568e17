"""Attributes that no two nodes may have in common: those by which a module reaches a machine."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from haptera.model.parts import Manifest, Part

Where = TypeVar("Where")


@dataclass(slots=True)
class Unique(Generic[Where]):
    """The values that were seen, each with where that was; of a name of some module's manifests.

    Two nodes that modules of different names reach by one value have it in common all the same.
    """

    manifests: Collection[Manifest]
    attributes: Collection[str]
    _seen: dict[tuple[str, str], Where] = field(default_factory=dict)

    def add(self, node: Mapping[str, str], where: Where) -> Iterable[tuple[str, str, Where]]:
        """Each value of a node that another had before, with its name, and where that was."""
        for name in self._names(node):
            value = node.get(name)
            if value:
                first = self._seen.setdefault((name, value), where)
                if first is not where:
                    yield name, value, first

    def _names(self, node: Mapping[str, str]) -> list[str]:
        reaching = (one for one in self.manifests if one.unique and self._reaches(one, node))
        return sorted({name for one in reaching for name in one.unique})

    def _reaches(self, manifest: Manifest, node: Mapping[str, str]) -> bool:
        return any(one.kind == "node" and self._is_for(one, node) for one in manifest.parts)

    def _is_for(self, part: Part, node: Mapping[str, str]) -> bool:
        """Whether the node's attributes let the part be taken of it."""
        conditions = (one for one in part.requires if one.name in self.attributes)
        return all(node.get(one.name) in one.values for one in conditions)
