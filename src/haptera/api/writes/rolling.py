"""The beginning of a roll: which systems are in it, what is refused, and what is written."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from haptera.api.backend import Queries
from haptera.api.writes.patching import missing
from haptera.controllers.roll.beginning import beginning, name_of, to_be_changed
from haptera.controllers.roll.progress import RollState, progress
from haptera.kinds import image, module, node, roll, system
from haptera.kinds.image import State
from haptera.model.answers.views import EntityView
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import Code, HapteraError
from haptera.rest.rolls import RollBody
from haptera.rest.schemas import EntityPatch
from haptera.selectors.selector import Selector, parse_selector

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_CONTROLLER: Final = EntityId(module.kind.name, roll.kind.name, None)
_SETTLED: Final = (RollState.DONE, RollState.UNDONE)


@dataclass(frozen=True, slots=True)
class RollStart:
    """A roll that may begin: its `systems`, which run another image now; some are in `others`."""

    name: str
    body: RollBody
    systems: Sequence[EntityView]
    others: Sequence[str]
    wall_s: float

    @property
    def owners(self) -> list[str]:
        """The owners of the images that the systems should run now."""
        return sorted({one.desired[system.image.name].owner for one in self.systems})

    def patches_at_end(self) -> list[EntityPatch]:
        """The changes that it will have made when it is done."""
        new: dict[str, str | int | None] = {system.image.name: self.body.image}
        return [EntityPatch(one.entity, new) for one in self.systems]

    def patches(self) -> list[EntityPatch]:
        """The changes that begin it, to be written whole."""
        begun = beginning(self.body, self.systems, self.wall_s)
        return [EntityPatch(entity, values) for entity, values in begun.items()]


async def roll_start(
    queries: Queries, body: RollBody, within: Collection[Selector], *, taking: bool, wall_s: float
) -> RollStart:
    """The roll that a request begins, on what its selector and all of `within` mean.

    Raises:
        HapteraError: no controller would carry it out, the image is not built, no system runs
            another image, or one is in another roll and is not to be taken from it.
    """
    if queries.entity(_CONTROLLER) is None:
        do = "add `controllers: {roll: {}}` to its site file, and start it again"
        raise HapteraError("no controller of rolls runs at this parent", do=do, code=Code.CONFLICT)
    _check_image(queries, body.image)
    name = name_of(body)
    found = await queries.entities([parse_selector(body.select), *within])
    left = to_be_changed(body, found)
    others = await _other_rolls(queries, left, name, wall_s)
    if others and not taking:
        one = next(one for one in left if one.desired_value(system.roll.name) in others)
        its = one.desired_value(system.roll.name)
        do = f"wait for it, haptera roll rm {its}, or add --take (take=1)"
        raise HapteraError(f"it is in roll {its}", where=one.entity, do=do, code=Code.CONFLICT)
    return RollStart(name, body, left, others, wall_s)


def _check_image(queries: Queries, name: str) -> None:
    if _DIGEST.fullmatch(name):
        return
    entity = EntityId(image.kind.name, check_name(name), None)
    view = queries.entity(entity)
    if view is None:
        raise missing(queries, entity)
    fact = view.observed.get(image.state.name)
    if fact is None or fact.value != State.BUILT:
        state = "not built" if fact is None else fact.value
        do = f"see haptera why {entity}"
        raise HapteraError(f"it is {state}", where=str(entity), do=do, code=Code.CONFLICT)


async def _other_rolls(
    queries: Queries, systems: Sequence[EntityView], name: str, wall_s: float
) -> list[str]:
    """The rolls besides this one that are not over, and have some of these systems."""
    names = {str(one.desired_value(system.roll.name) or name) for one in systems} - {name}
    views = [queries.entity(EntityId(roll.kind.name, one, None)) for one in sorted(names)]
    rolls = [one for one in views if one is not None and one.desired]
    if not rolls:
        return []
    kinds = (node.kind.name, system.kind.name)
    every = [await queries.entities([parse_selector(f"{kind}:*")]) for kind in kinds]
    known = [one for some in every for one in some]
    return [one.name for one in rolls if progress(one, known, wall_s).state not in _SETTLED]
