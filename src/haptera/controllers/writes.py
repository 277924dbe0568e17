"""What a controller writes at once: what it decides for one item, and for all of them."""

from dataclasses import dataclass, field

Patch = dict[str, str | int | None]


@dataclass(slots=True)
class Writes:
    """What is to be desired, declared and undeclared, all in one write."""

    desired: dict[str, Patch] = field(default_factory=dict)
    declare: dict[str, dict[str, str]] = field(default_factory=dict)
    undeclare: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.desired or self.declare or self.undeclare)

    def add(self, others: "Writes") -> None:
        """Have what others have, too; they are about other entities."""
        self.desired |= others.desired
        self.declare |= others.declare
        self.undeclare += others.undeclare
