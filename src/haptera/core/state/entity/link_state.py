"""The notes of sync on one entity; nobody else reads them."""

from dataclasses import dataclass, field

from haptera.model.messages import SeenValue, Standing


@dataclass(slots=True)
class Fragments:
    """The fragments of a report that have come so far, each with when it came."""

    version: int
    values: dict[str, tuple[SeenValue, int]] = field(default_factory=dict)
    stands: tuple[Standing | None, int] | None = None


@dataclass(slots=True)
class LinkState:
    """How far the two sides of a link have come with it; 0: not at all.

    `confirmed` is the revision that the parent above has sent in its present epoch, `heard` the
    version of what is observed as its agent reported it last. `version` numbers that as the parent
    above is sent it, and `told` is what that was. What is heard in fragments
    is put together in `fragments`.
    """

    confirmed: int = 0
    heard: int = 0
    version: int = 0
    told: tuple[tuple[str | bool | None, ...], ...] = ()
    fragments: Fragments | None = None

    def restart(self) -> None:
        """It is declared no longer: any report on it from now on is news."""
        self.confirmed = self.version = 0
        self.told = ()
