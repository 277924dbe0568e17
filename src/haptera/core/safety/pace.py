"""Boots in turn: so many a second, so that a hall does not draw all its power at once."""

from collections import Counter
from typing import Final

from haptera.core.state.entity.decision import ASSENT, Assent, Delay
from haptera.core.state.limits import S
from haptera.model.entity import EntityId

# Boots that begin within one second of the clock: of a parent's children, and of a fault group.
BOOTS_A_SECOND_MAX: Final = 10
GROUP_BOOTS_A_SECOND_MAX: Final = 2
# A turn to boot that was not taken within so long is given up.
BOOT_TURN_NS: Final = 60 * S

Group = str | None


class Pace:
    """Hands out turns to boot, by the second; None stands for all groups together."""

    def __init__(self) -> None:
        self._booked: Counter[tuple[Group, int]] = Counter()
        self._room_from: dict[Group, int] = {}
        self._turns: dict[EntityId, int] = {}
        self._forgotten = 0

    def answer(self, now: int, entity: EntityId, group: Group) -> Assent | Delay:
        """The answer to a claim of a turn: given, or until when not."""
        at = self._turn_at(now, entity, group)
        return ASSENT if at <= now else Delay("others boot first", "its turn to boot", at)

    def claim(self, now: int, entity: EntityId, group: Group) -> None:
        """It is to boot at its turn: books one, or takes the one whose time has come."""
        at, keys = self._turn_at(now, entity, group), {None, group}
        if self._turns.get(entity) != at:
            self._book(self._second(now, keys), keys)
            self._forget(now // S)
        self._turns[entity] = at
        if at <= now:
            del self._turns[entity]

    def _turn_at(self, now: int, entity: EntityId, group: Group) -> int:
        """The time of this entity's turn: the same one until that is long past."""
        at = self._turns.get(entity)
        if at is None or at < now - BOOT_TURN_NS:
            return max(now, self._second(now, {None, group}) * S)
        return at

    def _second(self, now: int, keys: set[Group]) -> int:
        """The first second with room for one boot more."""
        second = max(now // S, *(self._room_from.get(key, 0) for key in keys))
        while any(self._booked[key, second] >= _most(key) for key in keys):
            second += 1
        return second

    def _book(self, second: int, keys: set[Group]) -> None:
        for key in keys:
            self._booked[key, second] += 1
            if self._booked[key, second] >= _most(key):
                self._room_from[key] = second + 1

    def _forget(self, second: int) -> None:
        """Drop what was booked before this second, once a second."""
        if second > self._forgotten:
            self._forgotten = second
            for key in [key for key in self._booked if key[1] < second]:
                del self._booked[key]


def _most(group: Group) -> int:
    return BOOTS_A_SECOND_MAX if group is None else GROUP_BOOTS_A_SECOND_MAX
