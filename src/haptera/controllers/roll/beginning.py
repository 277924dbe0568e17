"""The beginning of a roll: what is written of it, and of the systems that it has."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from haptera.controllers.roll.observe import CANARY, UNAVAILABLE
from haptera.kinds import roll, system
from haptera.kinds.roll import OnFailure, RollWish
from haptera.model.answers.views import EntityView
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import HapteraError

Patches = dict[str, dict[str, str | int | None]]


@dataclass(frozen=True, slots=True)
class RollRequest:
    """A roll as a person orders it: `deadline_s` in seconds since 1970."""

    name: str
    selector: str
    image: str
    deadline_s: int
    canary: int = CANARY
    unavailable: str = UNAVAILABLE
    on_failure: OnFailure = OnFailure.GIVE_BACK
    health: str | None = None

    @property
    def entity(self) -> str:
        return roll_entity(self.name)


def roll_entity(name: str) -> str:
    """The entity of a roll of this name."""
    return str(EntityId(roll.kind.name, check_name(name), None))


def beginning(
    request: RollRequest, systems: Sequence[EntityView], others: Collection[str] = ()
) -> Patches:
    """The order, and in which systems' hands it is.

    Raises:
        HapteraError: there is none, or one is in one of these other rolls.
    """
    new = request.image
    left = [one for one in systems if value_of(one, system.image.name) not in (None, new)]
    if not left:
        what = f"all {len(systems)} run {new}, or no image" if systems else "there is no system"
        raise HapteraError(what, where=request.selector, do="see haptera get system:*")
    other = next((one for one in left if value_of(one, system.roll.name) in others), None)
    if other is not None:
        its = value_of(other, system.roll.name)
        do = f"wait for it, haptera roll rm {its}, or add --take"
        raise HapteraError(f"it is in roll {its}", where=other.entity, do=do)
    beside: dict[str, str | int | None] = {
        system.spare.name: new,
        system.roll.name: request.name,
        system.attempt.name: next_attempt(left),
    }
    if request.health is not None:
        beside[system.health.name] = request.health
    patches: Patches = {request.entity: _order(request)}
    # The image is claimed as it is, so that it is one's own to change.
    return patches | {
        one.entity: {system.image.name: value_of(one, system.image.name), **beside} for one in left
    }


def next_attempt(systems: Iterable[EntityView]) -> int:
    """The number of the next attempt of these systems."""
    return max((int(value_of(one, system.attempt.name) or 0) for one in systems), default=0) + 1


def value_of(view: EntityView, name: str) -> str | int | None:
    """What is desired of an entity by this name."""
    held = view.desired.get(name)
    return None if held is None else held.value


def _order(request: RollRequest) -> dict[str, str | int | None]:
    return {
        roll.image.name: request.image,
        roll.select.name: request.selector,
        roll.canary.name: request.canary,
        roll.unavailable.name: request.unavailable,
        roll.on_failure.name: request.on_failure,
        roll.deadline.name: request.deadline_s,
        roll.wish.name: RollWish.RUN,
        roll.halted.name: None,
        roll.finished.name: None,
    }
