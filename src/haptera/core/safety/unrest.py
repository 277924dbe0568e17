"""Nodes that fall silent: very many of them stop everything, a few only their own steps."""

from collections.abc import Callable
from typing import Final

from haptera.core.safety.brake import Brake
from haptera.core.safety.budget_rules import group_of
from haptera.core.safety.flaps import FLAPS_MAX, FLAPS_WITHIN_NS, STEADY_NS, Flaps
from haptera.core.state.entity.decision import Awaited, Lacking
from haptera.core.state.limits import MS, S
from haptera.core.state.row import EntityState
from haptera.core.state.turn import Turn
from haptera.model.answers.views import BrakeView
from haptera.model.entity import EntityId

_MINUTE_NS: Final = 60 * S


class Unrest:
    """The brake, and the nodes that flap; who waits for either is decided on again after it."""

    def __init__(self, size: Callable[[str | None], int]) -> None:
        self._brake = Brake(size)
        self._flaps = Flaps()
        self._braked_ones: set[EntityId] = set()

    def lost(self, now: int, node: EntityState) -> None:
        """This node has fallen silent, and nobody here has switched it off."""
        self._brake.lost(now, node.id.name, group_of(node))
        self._flaps.lost(now, node.id.name)

    def holds_all(self, now: int) -> Lacking | None:
        """Why nothing disruptive begins on any entity now."""
        if (text := self.braked(now)) is None:
            return None
        needs, until = "the end of the brake, or haptera brake --release", self._brake.until()
        return Lacking(f"the brake is on: {text}", needs, until, until, Awaited.BRAKE)

    def holds(self, node: EntityState | None, now: int) -> Lacking | None:
        """Why nothing disruptive begins on what is on this node now."""
        if node is None:
            return None
        name, until = node.id.name, self._flaps.until(node.id.name)
        if now < until:
            text = f"more than {FLAPS_MAX} times within {FLAPS_WITHIN_NS // _MINUTE_NS} min"
            steady = f"{STEADY_NS // _MINUTE_NS} min in which {name} does not fall silent"
            return Lacking(
                f"{name} flaps: it fell silent {text}",
                f"{steady}, or haptera override {name} -m WHY",
                until,
                until,
            )
        return None

    def awaited_by(self, entity: EntityId) -> None:
        """This one waits for the end of the brake."""
        self._braked_ones.add(entity)

    def braked(self, now: int) -> str | None:
        """Why nothing disruptive begins anywhere now."""
        return self._brake.on(now)

    def brake(self, now: int) -> BrakeView:
        """Whether the brake is on."""
        return BrakeView(self.braked(now), max(0, self._brake.until() - now) // MS)

    def release(self, turn: Turn) -> None:
        """A person has seen what happened: let go on what the brake has stopped."""
        self._brake.release()
        turn.dirty.update(self._braked_ones)
        self._braked_ones.clear()

    def forgive(self, node: str) -> None:
        """An admin has seen to this node."""
        self._flaps.forgive(node)
