"""The systems of a roll, by their views."""

from collections.abc import Iterable, Mapping
from typing import Final

from haptera.controllers.roll.decide import RollMember, RollOrder
from haptera.kinds import node, roll, system
from haptera.kinds.node import Busy
from haptera.kinds.roll import OnFailure, RollWish
from haptera.kinds.system import SystemRun
from haptera.model.answers.views import Condition, EntityView
from haptera.model.declared.schema import Applied
from haptera.model.entity import node_id
from haptera.model.walltime import coming_text
from haptera.rest.rolls import CANARY_DEFAULT, UNAVAILABLE_DEFAULT

Views = Mapping[str, EntityView]

# It runs the other image, and will try to flip, or try again, as soon as it may.
_WAIT: Final = (Condition.WAITING, Condition.STUCK)
UNTOLD: Final = "it does not run there"


def order_of(view: EntityView, *, wall_s: float) -> RollOrder:
    """What was asked for, with defaults for what was left open."""
    deadline = view.desired_value(roll.deadline.name)
    return RollOrder(
        image=str(view.desired_value(roll.image.name) or ""),
        canary=int(view.desired_value(roll.canary.name) or CANARY_DEFAULT),
        unavailable=str(view.desired_value(roll.unavailable.name) or UNAVAILABLE_DEFAULT),
        on_failure=OnFailure(str(view.desired_value(roll.on_failure.name) or OnFailure.GIVE_BACK)),
        wish=RollWish(str(view.desired_value(roll.wish.name) or RollWish.RUN)),
        is_late=deadline is not None and wall_s > int(deadline),
        is_finished=view.desired_value(roll.finished.name) is not None,
        halted=None if (said := view.desired_value(roll.halted.name)) is None else str(said),
    )


def systems_of(view: EntityView, views: Iterable[EntityView]) -> list[EntityView]:
    """The systems in a roll: its owner put them there, and desires one of its images.

    Another's word for it is none: who may not change a system cannot have a roll do so.
    """
    image = view.desired.get(roll.image.name)
    if image is None:
        return []
    found = []
    for one in views:
        said = one.desired.get(system.roll.name)
        images = {one.desired_value(system.image.name), one.desired_value(system.spare.name)}
        if said is not None and (said.value, said.owner) == (view.name, image.owner):
            found += [one] if image.value in images and None not in images else []
    return sorted(found, key=lambda one: one.entity)


def member_of(
    view: EntityView, views: Views, image: str, *, vanished: bool, wall_s: float
) -> RollMember:
    """One system of a roll to this image, and how it stands."""
    new = view.desired_value(system.image.name) == image
    runs = (
        None if (said := view.known_value(system.run.name)) is None else said == SystemRun.RUNNING
    )
    current = view.known_value(system.applied.name)
    staged = view.known_value(system.staged.name)
    on = views.get(str(node_id(str(view.node))))
    return RollMember(
        view.entity,
        new=new,
        works=runs if not new or runs is False or current == Applied.CURRENT else None,
        # What does not run as it should has nothing to prepare beside it, and nothing to lose.
        ready=staged == Applied.CURRENT or runs is False or current == Applied.STALE,
        free=on is not None and on.known_value(node.busy.name) == Busy.FREE,
        waits=runs is True and current == Applied.STALE and view.condition in _WAIT,
        refused=_refusal(view),
        vanished=vanished,
        why=_reason(view, wall_s),
    )


def is_heard(view: EntityView) -> bool:
    """Whether it is known now whether the system runs."""
    return view.known_value(system.run.name) is not None


def _reason(view: EntityView, wall_s: float) -> str:
    """What it waits for, in its own words, and when that is tried again."""
    if view.condition not in _WAIT or view.why is None:
        return ""
    in_ms = view.again_in_ms
    return view.why if in_ms is None else f"{view.why}, next {coming_text(wall_s, in_ms)}"


def _refusal(view: EntityView) -> str | None:
    if view.known_value(system.refused.name) != Applied.CURRENT:
        return None
    return view.observed[system.refused.name].note or view.error or view.why or UNTOLD
