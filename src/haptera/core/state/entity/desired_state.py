"""The desired state of one entity, as it was last written: its table alone changes it."""

from dataclasses import dataclass, field

from haptera.model.changes import Desired
from haptera.model.declared.schema import digest


@dataclass(slots=True)
class DesiredState:
    """The attributes and values that somebody declared, and who did.

    `revision` is that of the last change, 0 where there was none. A `resident` entity is there
    whether or not anybody declared it: that of a module. A `leaving` one is no longer declared, and
    is brought to what its kind leaves.
    """

    attributes: dict[str, str] = field(default_factory=dict)
    owner: str = ""
    values: dict[str, Desired] = field(default_factory=dict)
    revision: int = 0
    leaving: bool = False
    resident: bool = False

    @property
    def declared(self) -> bool:
        """Whether somebody declared the entity, or it is only there because it runs."""
        return not self.resident or bool(self.owner or self.revision or self.values)

    def digest(self) -> str:
        """Stands for the attributes and values, of any owner."""
        return digest({"": self.attributes} | {n: one.value for n, one in self.values.items()})

    def withdraw(self) -> None:
        """Nobody declares it any more; a resident stays."""
        self.owner, self.values, self.attributes, self.revision = "", {}, {}, 0

    def replace(
        self, attributes: dict[str, str], values: dict[str, Desired], revision: int
    ) -> bool:
        """Take over what a parent desires, whole; tell whether it is other than before."""
        differs = (values, attributes) != (self.values, self.attributes)
        self.attributes, self.values, self.revision = attributes, values, revision
        self.leaving = False
        return differs
