"""What a module is asked to look at or change: one entity, as its functions are told of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haptera.model.entity import EntityId


class Refused(Exception):  # noqa: N818 - it is what the device said, not a fault of ours
    """The device itself says that the command had no effect and will have none."""


class Draining(Exception):  # noqa: N818 - it is what the gate says, not a fault of ours
    """A gate lets nothing begin on its node, and waits for what runs there: ask again."""


@dataclass(frozen=True, slots=True)
class Boot:
    """What a machine that is booted needs to enrol: hand it over, never log or store it."""

    token: str = field(repr=False)
    ca_pem: str = field(repr=False)
    parent: str


@dataclass(frozen=True, slots=True)
class Setup:
    """What a module's process has from its beginning: its settings, and a folder for its files."""

    settings: Any = field(repr=False)
    run_dir: Path


@dataclass(frozen=True, slots=True)
class Target:
    """One entity: its attributes and its node's, its plain desired data and their digest.

    `settings` are those of the module, of the type that it declares, or else a mapping.
    `intent` is set for steps, `boot` for steps that enrol. What must outlive the module's
    process is kept in `run_dir`; `session` is what its lifespan made, None where it has none.
    `deadline_ns` is when its time is over, in ns of CLOCK_BOOTTIME, None for a watch. A look may
    `note` what it sees besides the value.
    """

    entity: EntityId
    attributes: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str | int] = field(default_factory=dict)
    digest: str = ""
    intent: str | None = None
    boot: Boot | None = None
    run_dir: Path = Path()
    settings: Any = field(default_factory=dict)
    session: Any = None
    deadline_ns: int | None = None
    _notes: list[str] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.entity.name

    @property
    def node(self) -> str | None:
        return self.entity.node

    def note(self, text: str) -> None:
        """Say in words for people what a look saw besides its value: how a service ended, say."""
        self._notes[:] = [text]

    def take_note(self) -> str | None:
        """What was noted last, once."""
        return self._notes.pop() if self._notes else None
