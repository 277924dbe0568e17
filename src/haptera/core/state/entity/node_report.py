"""The last word of a node's agent, or of the parent that keeps it, on one entity: sync's part."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from haptera.core.state.entity.nothing import nothing
from haptera.core.state.entity.verdict import Stands
from haptera.model.facts import Fact


@dataclass(slots=True)
class NodeReport:
    """The last report; its `facts` and where the entity `stands` hold while the node is heard.

    Of a node, `lost_at` is since when its agent is lost; `suspect` while that is only feared. By
    the word of an earlier process it had `enrolled` since its boot, until this one knows better.
    """

    facts: Mapping[str, Fact] = field(default_factory=nothing)
    stands: Stands | None = None
    lost_at: int | None = None
    suspect: bool = False
    enrolled: bool = False

    def forget(self, name: str) -> None:
        """The report on this variable is from before a step changed it."""
        if name in self.facts:
            self.facts = {other: fact for other, fact in self.facts.items() if other != name}

    def clear(self) -> None:
        """It holds no longer."""
        self.facts = nothing()
        self.stands = None
