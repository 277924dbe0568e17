"""Beliefs about one entity: readings, and memories of earlier ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from haptera.core.state.entity.nothing import nothing
from haptera.model.facts import Fact, Method


@dataclass(slots=True)
class Belief:
    """Values that are `known`, and those `remembered` that no reading vouches for any more.

    `found_at` says when each known value was first read, `forgotten_at` when one was last demoted
    to remembered; `second` holds what another module last read of a variable.
    """

    known: dict[str, Fact] = field(default_factory=dict)
    remembered: dict[str, Fact] = field(default_factory=dict)
    forgotten_at: dict[str, int] = field(default_factory=dict)
    found_at: dict[str, int] = field(default_factory=dict)
    second: Mapping[str, Fact] = field(default_factory=nothing)

    def learn(self, name: str, fact: Fact) -> bool:
        """Take a reading, unless a later one is known; tell whether it says anything new."""
        old = self.known.get(name)
        if old is not None and old.at > fact.at:
            return False
        if old is None or old.value != fact.value:
            self.found_at[name] = fact.at
        if old is not None and old.by != fact.by and old.method is fact.method is Method.READ:
            self.dispute(name, old)
        self.known[name] = fact
        self.remembered.pop(name, None)
        return old is None or _shown(old) != _shown(fact)

    def agree(self, name: str) -> None:
        """What another module last read of a variable does not count beside what is known."""
        self.second = {one: old for one, old in self.second.items() if one != name}

    def forget(self, name: str, now: int) -> bool:
        """Keep a value as remembered only; tell whether it was known."""
        fact = self.known.pop(name, None)
        if fact is None:
            return False
        if name in self.second:
            self.agree(name)
        self.remembered[name] = fact
        self.forgotten_at[name] = now
        return True

    def dispute(self, name: str, fact: Fact) -> None:
        """Note what another has read of a known variable; it stays known until a look tells."""
        self.second = {**self.second, name: fact}

    def remember(self, name: str, fact: Fact) -> None:
        """Take a value that no reading vouches for now."""
        self.remembered[name] = fact

    def drop(self, names: Iterable[str]) -> None:
        """Neither know nor remember these."""
        for name in names:
            self.known.pop(name, None)
            self.remembered.pop(name, None)

    def show(self, known: dict[str, Fact], remembered: dict[str, Fact]) -> None:
        """Take over what another side believes, whole."""
        self.known, self.remembered = known, remembered


def _shown(fact: Fact) -> tuple[str, Method, str, str | None]:
    """All that is shown of a reading but its age."""
    return fact.value, fact.method, fact.by, fact.note
