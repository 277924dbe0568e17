"""Many entities of a class, each in its state: what comes next for all, in plain Python.

The twin of `planner/fleet/columns.py`, for whoever has no numpy; a property test holds them equal.
"""

from collections.abc import Iterable, Mapping

from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.domain import Domain
from haptera.planner.planner import next_part
from haptera.planner.search.search_budget import EXPANSIONS_MAX
from haptera.planner.search.serial_subgoals import End


class States:
    """Words of entities that have the same class."""

    def __init__(self, domain: Domain, words: Iterable[int]) -> None:
        self._domain = domain
        self._words = list(words)

    def words(self) -> list[int]:
        return list(self._words)

    def strip(self) -> None:
        """Remember what is known but cannot be looked at."""
        self._words = [self._domain.strip(word) for word in self._words]

    def next_parts(self, goal: Mapping[str, str], *, budget: int = EXPANSIONS_MAX) -> list[int]:
        """The number of the move that comes next for each, or its end; words are stripped."""
        numbers = numbering(self._domain)
        found = {
            word: number(next_part(self._domain, word, goal, expansions_max=budget), numbers)
            for word in dict.fromkeys(self._words)
        }
        return [found[word] for word in self._words]


def numbering(domain: Domain) -> Mapping[Operator, int]:
    """The numbers of moves: their places in the class, first those that trust memory."""
    return {move: place for place, move in enumerate((*domain.moves, *domain.doubts))}


def number(found: Operator | End, numbers: Mapping[Operator, int]) -> int:
    return found if isinstance(found, End) else numbers[found]
