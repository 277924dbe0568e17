"""What a roll does next: pure, from how its systems stand now, so that it has nothing to forget.

How many are under way at once opens as TCP's slow start does: by one for each that came out well,
so that it doubles with each round. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from haptera.kinds.roll import OnFailure, RollWish, unavailable_max

# So many systems are named in a text.
NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class RollOrder:
    """What a person asked for: `halted` is why it stands still, until that person takes it away.

    One that is finished looks after its systems no more, until it is to be undone.
    """

    image: str
    canary: int
    unavailable: str
    on_failure: OnFailure
    wish: RollWish
    is_late: bool = False
    is_finished: bool = False
    halted: str | None = None


@dataclass(frozen=True, slots=True)
class RollMember:
    """One system: whether the new image is desired of it, and what is known of it now.

    `works` says whether what is desired of it is known to run, None where that is not known.
    `refused` is why the desired image does not run there. The other one is `ready` once it can be
    flipped to. A `free` one has no job to wait for. One that `waits` is known
    to run the other image still, and may not be flipped yet; `why` says what is in its way, and
    until when, as far as known. A `vanished` one has not been heard of
    for so long that it counts no more.
    """

    name: str
    new: bool
    works: bool | None
    ready: bool
    free: bool = True
    waits: bool = False
    refused: str | None = None
    vanished: bool = False
    why: str = ""

    @property
    def proven(self) -> bool:
        return self.works is True and self.refused is None


class RollMoves(NamedTuple):
    """Which systems exchange image and spare now, and why the roll halts, or that it is done."""

    take: tuple[str, ...] = ()
    give_back: tuple[str, ...] = ()
    halt: str | None = None
    finish: bool = False


def next_moves(order: RollOrder, members: Sequence[RollMember]) -> RollMoves:
    """What is to be written now, in one piece."""
    if order.wish is RollWish.UNDO:
        return RollMoves(give_back=tuple(_undone(order, members)))
    if order.is_finished:
        return RollMoves()
    if order.wish is RollWish.ABORT:
        return RollMoves(give_back=_names(one for one in members if one.new and not one.proven))
    if is_done(members):
        return RollMoves(finish=True)
    if failed := [one for one in members if one.new and _has_failed(one)]:
        give_back = failed if order.on_failure is OnFailure.GIVE_BACK else []
        given = _names([*give_back, *_waiting(members)])
        return RollMoves(give_back=given, halt=order.halted or _failures(failed))
    halt = order.halted or ("its deadline has passed" if order.is_late else None)
    if halt is not None:
        return RollMoves(give_back=_names(_waiting(members)), halt=halt)
    return RollMoves(take=() if order.wish is RollWish.PAUSE else tuple(_taken(order, members)))


def is_done(members: Sequence[RollMember]) -> bool:
    """Whether all run the new image."""
    return all(one.new and one.proven for one in members)


def waits_for(order: RollOrder, members: Sequence[RollMember]) -> str:
    """In words, why nothing is taken now."""
    if unready := _unready(members):
        return f"{_listed(unready)} to have the image ready"
    if under_way := [one for one in members if _is_under_way(one)]:
        busy = [one for one in under_way if not one.free]
        names = f"the jobs on {_listed(busy)}" if busy == under_way else _listed(under_way)
        why = next((one.why for one in under_way if one.why), "")
        return f"{names}: {why}" if why else names
    if away := [one for one in members if not one.new and _is_away(one)]:
        return f"{_listed(away)}, which are away: {_most(order, members)} may be"
    if vanished := [one for one in members if one.vanished]:
        return f"{_listed(vanished)} to be heard again"
    return "nothing"


def taken_back(members: Iterable[RollMember]) -> tuple[str, ...]:
    """Who gets the old image where an unfinished roll is given up: all that do not run the new."""
    return _names(one for one in members if not (one.new and one.proven))


def _waiting(members: Iterable[RollMember]) -> list[RollMember]:
    """Who would change over to the new image as soon as it may, though the roll has halted.

    Meanwhile their nodes are drained, for as long as one job follows another.
    """
    return [one for one in members if one.new and one.waits and not _has_failed(one)]


def _taken(order: RollOrder, members: Sequence[RollMember]) -> Iterator[str]:
    """The next systems: what is broken first, for it has nothing to lose, then free ones.

    An unknown is not disturbed, and counts as away.
    """
    if _unready(members):
        return
    proven = sum(one.new and one.proven for one in members)
    under_way = sum(_is_under_way(one) for one in members)
    window = max(order.canary, proven) if proven >= order.canary else order.canary - proven
    window -= under_way
    away = sum(not one.new and _is_away(one) for one in members)
    room = _most(order, members) - under_way - away
    left = [one for one in members if not one.new and one.ready and one.works is not None]
    for one in sorted(left, key=lambda one: (one.works is not False, not one.free, one.name)):
        if window <= 0 or (one.works and room <= 0):
            continue
        window -= 1
        room -= bool(one.works)
        yield one.name


def _undone(order: RollOrder, members: Sequence[RollMember]) -> Iterator[str]:
    """Give back whatever is not well at once, and the rest as the budget allows."""
    given = [one for one in members if not one.new]
    room = _most(order, members) - sum(_is_away(one) for one in given)
    new = [one for one in members if one.new and one.ready]
    yield from (one.name for one in new if not one.proven)
    proven = sorted((one for one in new if one.proven), key=lambda one: (not one.free, one.name))
    yield from (one.name for one in islice(proven, max(0, room)))


def _unready(members: Iterable[RollMember]) -> list[RollMember]:
    """Those for which all wait: until the first is taken, all that are there must be ready."""
    members = list(members)
    if any(one.new for one in members):
        return []
    return [one for one in members if not one.ready and not one.vanished]


def _most(order: RollOrder, members: Sequence[RollMember]) -> int:
    return unavailable_max(order.unavailable, sum(not one.vanished for one in members))


def _is_away(one: RollMember) -> bool:
    return one.works is not True and not one.vanished


def _is_under_way(one: RollMember) -> bool:
    return one.new and not one.proven and not one.vanished


def _has_failed(one: RollMember) -> bool:
    return one.refused is not None or (one.vanished and not one.proven)


def _failures(members: Sequence[RollMember]) -> str:
    why = members[0].refused or "it vanished"
    more = f", and {len(members) - 1} more" if len(members) > 1 else ""
    return f"{members[0].name}{more}: {why}"


def _listed(members: Sequence[RollMember]) -> str:
    more = len(members) - NAMED_MAX
    shown = ", ".join(_names(members[:NAMED_MAX]))
    return f"{shown} and {more} more" if more > 0 else shown


def _names(members: Iterable[RollMember]) -> tuple[str, ...]:
    return tuple(one.name for one in members)
