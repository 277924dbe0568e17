"""The parts of all sides of a cluster, moved to its parent, so that one engine runs them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace as replaced
from typing import Final

from haptera.core.modules.catalog import Catalog
from haptera.core.sync.presence import HEAR
from haptera.model.declared.schema import Kind
from haptera.model.parts import AT_ONCE_MAX, Context, Manifest

# A watch reports each change here, so nothing is looked at again for its age alone.
SELDOM_MS: Final = 86_400_000
AGENTS: Final = "agents"
# In place of hellos: a look, which a model of the node answers.
PRESENCE: Final = Manifest(
    AGENTS,
    "1",
    Context.PARENT,
    (
        replaced(
            HEAR, module=AGENTS, name="look_agent", every_ms=SELDOM_MS, watched=True,
        ),
    ),
    (),
    at_once=AT_ONCE_MAX,
)  # fmt: skip


class FoldedCatalog(Catalog):
    """The parts of all sides, all to be run at the parent."""

    def __init__(self, kinds: Mapping[str, Kind], manifests: Iterable[Manifest]) -> None:
        manifests = [*manifests]
        self.of_nodes = frozenset(
            part.path for one in manifests for part in one.parts if part.context is Context.SELF
        )
        super().__init__(kinds, [*map(_folded, manifests), PRESENCE])
        # What a node keeps without its power: it is looked at from outside.
        self.lasting = frozenset(
            (one.kind, one.at) for one in self.looks() if one.path not in self.of_nodes
        )

    def _declare(self, manifests: dict[str, Manifest]) -> None:
        super()._declare({name: one for name, one in manifests.items() if name != HEAR.module})


def _folded(manifest: Manifest) -> Manifest:
    looks = (
        replaced(one, context=Context.PARENT, every_ms=SELDOM_MS, watched=True)
        for one in manifest.looks
    )
    steps = (replaced(one, context=Context.PARENT) for one in manifest.steps)
    return replaced(
        manifest, context=Context.PARENT, looks=tuple(looks), steps=tuple(steps),
        at_once=AT_ONCE_MAX if manifest.context is Context.SELF else manifest.at_once,
    )  # fmt: skip
