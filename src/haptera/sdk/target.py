"""The subject of a look or step: one entity, as a module's functions see it."""

import asyncio
from collections.abc import Callable, Mapping
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
    """What a machine that is booted needs to enrol: hand it over, never log or store it.

    `good_for_s` is how long it may take until then, as the site's policies have it.
    """

    token: str = field(repr=False)
    ca_pem: str = field(repr=False)
    parent: str
    good_for_s: float = field(default=600.0, repr=False)


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
    `deadline_ns` is when its time is over, in ns of CLOCK_BOOTTIME, None for a watch; `now` reads
    that clock. A look may `note` what it sees besides the value, and say how old that is; a step
    may tell its `progress`. One that is declared `stoppable` sees by `unwanted` that something else
    is desired by now.
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
    now: Callable[[], int] = field(default=lambda: 0, compare=False, repr=False)
    tell: Callable[[str, float | None], object] = field(
        default=lambda _text, _done: None, compare=False, repr=False
    )
    _unwanted: asyncio.Event = field(
        default_factory=asyncio.Event, init=False, compare=False, repr=False
    )
    _notes: list[str] = field(default_factory=list, init=False, compare=False, repr=False)
    _ages_s: list[float] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.entity.name

    @property
    def node(self) -> str | None:
        return self.entity.node

    def progress(self, text: str, done: float | None = None) -> None:
        """Say how far a step is: in words for people, and as a share of 1 where that is known."""
        if done is not None and not 0 <= done <= 1:
            raise ValueError(f"{done} is not between 0 and 1")
        self.tell(text, done)

    @property
    def unwanted(self) -> bool:
        """Whether something else is desired by now than this step is to bring about.

        It may go on all the same. Or it ends: with `Refused` where it had no effect and will have
        none; else by returning or raising, and what came of it is read.
        """
        return self._unwanted.is_set()

    async def until_unwanted(self) -> None:
        """Wait until something else is desired."""
        await self._unwanted.wait()

    def stop(self) -> None:
        """Something else is desired by now."""
        self._unwanted.set()

    def refuse_late(self) -> None:
        """For a step that has to prepare, by a connection for instance, before it has an effect.

        haptera asks before the step begins; ask again immediately before the effect.

        Raises:
            Refused: its time is over; what it was to bring about may be unwanted by now.
        """
        if self.deadline_ns is not None and self.now() >= self.deadline_ns:
            late_ms = (self.now() - self.deadline_ns) // 1_000_000
            raise Refused(f"not started: its deadline had passed {late_ms} ms before")

    def note(self, text: str) -> None:
        """Say in words for people what a look saw besides its value: how a service ended, say."""
        self._notes[:] = [text]

    def age(self, seconds: float) -> None:
        """Say how long before the call what a look tells was so: of a list that others keep, say.

        It then counts as read at that time: as the outcome of no step that was begun later.

        Raises:
            ValueError: it was so before it was asked for, at the latest.
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"the age of a reading cannot be {seconds} s")
        self._ages_s[:] = [seconds]

    def take_age_ns(self) -> int:
        """How old it is by what was said last, once; 0 where nothing was."""
        return round(self._ages_s.pop() * 1e9) if self._ages_s else 0

    def take_note(self) -> str | None:
        """What was noted last, once."""
        return self._notes.pop() if self._notes else None
