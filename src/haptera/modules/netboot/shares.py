"""Places that several ask for: nobody gets so many that somebody else gets none."""

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Shares(Generic[T]):
    """At most `each_max` places of one asker, `all_max` of all; who has more gives way.

    >>> places = Shares[str](all_max=3, each_max=2)
    >>> [places.enter("a", one) for one in ("a1", "a2", "a3")]
    [None, None, 'a1']
    >>> places.enter("b", "b1"), places.enter("b", "b2"), places.enter("c", "c1")
    (None, 'b2', 'a2')
    """

    def __init__(self, *, all_max: int, each_max: int) -> None:
        self._all_max = all_max
        self._each_max = each_max
        self._held: dict[str, dict[T, None]] = {}
        self._count = 0

    def enter(self, who: str, one: T) -> T | None:
        """Give it a place; what gives way for it, which is `one` itself where there is none.

        An asker that has its share gives up its oldest place: what a machine began before a reset.
        Where all are taken, who has the most gives one up to who has fewer even with it.
        """
        mine, loser = len(self._held.get(who, ())), None
        if mine >= self._each_max:
            loser = who
        elif self._count >= self._all_max:
            loser = max(self._held, key=lambda other: len(self._held[other]))
            if len(self._held[loser]) <= mine + 1:
                return one
        given_up = None
        if loser is not None:
            given_up = next(iter(self._held[loser]))
            self.leave(loser, given_up)
        self._held.setdefault(who, {})[one] = None
        self._count += 1
        return given_up

    def leave(self, who: str, one: T) -> None:
        """Give its place back, if it has not given way already."""
        held = self._held.get(who, {})
        if one in held:
            del held[one]
            self._count -= 1
        if not held:
            self._held.pop(who, None)
