"""How far a roll has come, for people: counts, and what it waits for."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from haptera.controllers.roll.decide import RollOrder, is_done, taken_back, waits_for
from haptera.controllers.roll.observe import member_of, order_of, systems_of
from haptera.kinds import system
from haptera.kinds.roll import RollWish
from haptera.model.answers.views import EntityView


class RollState(StrEnum):
    """Where a roll stands."""

    RUNNING = "running"
    PAUSED = "paused"
    HALTED = "halted"
    ABORTED = "aborted"
    UNDOING = "undoing"
    UNDONE = "undone"
    DONE = "done"


class RollProgress(NamedTuple):
    """A roll in a line: of its systems so many run the new image, so many are on their way."""

    name: str
    image: str
    state: RollState
    proven: int
    under_way: int
    total: int
    why: str


def progress(view: EntityView, views: Iterable[EntityView], wall_s: float) -> RollProgress:
    """How far this roll has come, by what is known of its systems and their nodes."""
    known = {one.entity: one for one in views}
    # A deadline that has passed shows as a halt.
    order = order_of(view, wall_s=0)
    members = [
        member_of(one, known, order.image, vanished=False, wall_s=wall_s)
        for one in systems_of(view, known.values())
    ]
    new = [one for one in members if one.new]
    proven = sum(one.proven for one in new)
    state = _state(order, done=is_done(members), begun=bool(new))
    return RollProgress(
        view.name,
        order.image,
        state,
        proven,
        len(new) - proven,
        len(members),
        order.halted or (f"waits for {waits_for(order, members)}" if state in _GOES_ON else ""),
    )


def old_images(view: EntityView, views: Iterable[EntityView]) -> dict[str, str]:
    """What was desired of each system that this roll has not brought to run its image.

    Of a roll that is finished there is none.
    """
    known = {one.entity: one for one in views}
    order = order_of(view, wall_s=0)
    if order.is_finished:
        return {}
    systems = {one.entity: one for one in systems_of(view, known.values())}
    members = [
        member_of(one, known, order.image, vanished=False, wall_s=0) for one in systems.values()
    ]
    new = {one.name for one in members if one.new}
    held = {name: systems[name].desired for name in taken_back(members)}
    return {
        name: str(one[(system.spare if name in new else system.image).name].value)
        for name, one in held.items()
    }


_GOES_ON = (RollState.RUNNING, RollState.UNDOING)
_WISHED = {RollWish.PAUSE: RollState.PAUSED, RollWish.ABORT: RollState.ABORTED}


def _state(order: RollOrder, *, done: bool, begun: bool) -> RollState:
    if order.wish is RollWish.UNDO:
        return RollState.UNDOING if begun else RollState.UNDONE
    if order.is_finished or done:
        return RollState.DONE
    if order.halted is not None:
        return RollState.HALTED
    return _WISHED.get(order.wish, RollState.RUNNING)
