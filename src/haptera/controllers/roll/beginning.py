"""The beginning of a roll: which systems are in it, and what is written of it and of them."""

from collections.abc import Iterable, Sequence

from haptera.kinds import roll, system
from haptera.kinds.roll import RollWish
from haptera.model.answers.views import EntityView
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import HapteraError
from haptera.rest.rolls import RollBody

Patches = dict[str, dict[str, str | int | None]]


def name_of(body: RollBody) -> str:
    """The roll's name: its own, or else that of its image."""
    return check_name(body.name or body.image)


def roll_entity(name: str) -> str:
    """The entity of a roll of this name."""
    return str(EntityId(roll.kind.name, check_name(name), None))


def to_be_changed(body: RollBody, entities: Iterable[EntityView]) -> list[EntityView]:
    """The systems among these entities that are to run another image than now.

    Raises:
        HapteraError: there is none.
    """
    systems = [one for one in entities if one.kind == system.kind.name]
    left = [
        one for one in systems if one.desired_value(system.image.name) not in (None, body.image)
    ]
    if not left:
        runs = f"all {len(systems)} run {body.image}, or no image"
        what = runs if systems else "there is no system"
        raise HapteraError(what, where=body.select, do="see haptera get system:*")
    return left


def beginning(body: RollBody, systems: Sequence[EntityView], wall_s: float) -> Patches:
    """The changes that begin a roll of these systems, to be written whole."""
    beside: dict[str, str | int | None] = {
        system.spare.name: body.image,
        system.roll.name: name_of(body),
        system.attempt.name: next_attempt(systems),
    }
    if body.health is not None:
        beside[system.health.name] = body.health
    begun: Patches = {roll_entity(name_of(body)): _order(body, int(wall_s) + body.deadline_s)}
    # The image is claimed as it is, so that it is one's own to change.
    return begun | {
        one.entity: {system.image.name: one.desired_value(system.image.name), **beside}
        for one in systems
    }


def next_attempt(systems: Iterable[EntityView]) -> int:
    """The number of the next attempt of these systems."""
    return max((int(one.desired_value(system.attempt.name) or 0) for one in systems), default=0) + 1


def _order(body: RollBody, deadline_s: int) -> dict[str, str | int | None]:
    return {
        roll.image.name: body.image,
        roll.select.name: body.select,
        roll.canary.name: body.canary,
        roll.unavailable.name: body.unavailable,
        roll.on_failure.name: body.on_failure,
        roll.deadline.name: deadline_s,
        roll.wish.name: RollWish.RUN,
        roll.halted.name: None,
        roll.finished.name: None,
    }
