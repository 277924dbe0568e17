"""Keeps nodes below the power caps of a site: reads measurements, and writes power profiles.

Nothing has to outlive it: what it has lowered is what it desires. A parent that starts anew raises
nothing until it has been calm for as long as any other.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.daemon.health.health import LOOK_EVERY_S, HealthKeeper, HealthSource, holders
from haptera.daemon.queue.linked import linked
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.daemon.samples.sample_board import SampleBoard
from haptera.health.capping import (
    SETTLE_S,
    CappedNode,
    PowerCap,
    Restraint,
    decide_cap,
)
from haptera.health.judge import is_named
from haptera.health.ward import Ward
from haptera.kinds import node, replica
from haptera.kinds.node import Power, PowerProfile
from haptera.kinds.rules import power_cap
from haptera.model.answers.views import EntityView
from haptera.model.entity import parse_entity
from haptera.planner.domain.pieces import Pieces, slices
from haptera.runtime import clock
from haptera.runtime.over_turns import over_turns
from haptera.runtime.processes.control import Source
from haptera.sdk import Conflict
from haptera.sdk.boundary import Boundary
from haptera.sdk.failures import cut
from haptera.selectors.selector import ALL, parse_selector

NAME: Final = "power-caps"
# The author of the profiles that it desires.
WHO: Final = f"controller:{NAME}"
KINDS: Final = tuple(one.kind.name for one in (node, replica, power_cap))
WATTS: Final = "bmc.power"
INLETS: Final = "*temp.inlet"
CELSIUS: Final = "°C"
# The nodes whose measurements are looked up at once.
MEASURED_AT_ONCE: Final = 50
PROFILES: Final = {
    Restraint.NONE: PowerProfile.PERFORMANCE,
    Restraint.SOME: PowerProfile.BALANCED,
    Restraint.MOST: PowerProfile.POWERSAVE,
}
_RESTRAINTS: Final = {
    **{str(profile): restraint for restraint, profile in PROFILES.items()},
    # Some of its processors run as they can.
    str(PowerProfile.OTHER): Restraint.NONE,
}

Views = Mapping[str, EntityView]
Patch = dict[str, str | int | None]


def health_keepers(
    source: HealthSource, jobs: ParentQueue, board: SampleBoard
) -> "tuple[HealthKeeper, CapKeeper]":
    """The keepers of a parent that go by what its nodes measure."""
    health = HealthKeeper(source, jobs, board)
    return health, CapKeeper(source, jobs, board, health.ward)


class CapKeeper:
    """The power caps of a parent, over the nodes that it manages."""

    def __init__(self, source: Source, jobs: ParentQueue, board: SampleBoard, ward: Ward) -> None:
        self._source = source
        self._jobs = jobs
        self._board = board
        self._ward = ward
        # When each cap last changed a profile, or was first seen.
        self._changed: dict[str, float] = {}

    async def run(self) -> None:
        """Keep them until cancelled."""
        cluster, control = linked(NAME, self._source)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(control.run())
            async for changes in cluster.watch(kinds=KINDS, tick_s=LOOK_EVERY_S):
                # Who writes first is heeded: the next look decides on what is so then.
                with Boundary(NAME), suppress(Conflict):
                    if patches := await over_turns(self.decide(changes.now, clock.wall_s())):
                        await cluster.write(patches)

    def decide(self, views: Views, now: float) -> Pieces[dict[str, Patch]]:
        """The profiles that are to be written now, by node."""
        held = holders(one for one in views.values() if one.kind == replica.kind.name)
        caps = [one for one in views.values() if one.kind == power_cap.kind.name]
        nodes, there = dict[str, EntityView](), dict[str, CappedNode]()
        for some in slices(views.values(), READ_AT_ONCE):
            for one in some:
                if one.kind == node.kind.name and (caps or _is_ours(one)):
                    nodes[one.name], there[one.name] = one, self._node(one, held)
            yield READING_EACH * len(some)
        wanted: dict[str, dict[str, tuple[Restraint, str]]] = {name: {} for name in there}
        for view in caps:
            wishes = yield from self._wanted(view, nodes, there, now)
            for name, wish in wishes.items():
                wanted[name][view.name] = wish
        patches: dict[str, Patch] = {}
        for names in slices(sorted(wanted), READ_AT_ONCE):
            for name in names:
                # Below several caps, the one that allows least counts.
                lifted = Restraint.NONE if not there[name].hot else there[name].restraint
                to, why = max(wanted[name].values(), default=(lifted, "no cap is on it any more"))
                if patch := _patch(nodes[name], there[name], to, why):
                    patches[nodes[name].entity] = patch
                if patch and to is not there[name].restraint:
                    self._changed |= dict.fromkeys(wanted[name], now)
            yield READING_EACH * len(names)
        self._changed = {one.name: self._changed.get(one.name, now) for one in caps}
        return patches

    def _wanted(
        self, view: EntityView, nodes: Views, there: Mapping[str, CappedNode], now: float
    ) -> Pieces[dict[str, tuple[Restraint, str]]]:
        """The profiles that a cap gives to its nodes, each with the reason."""
        cap, sensors = _cap(view), str(view.desired_value(power_cap.sensors.name) or WATTS)
        of, leads = self._meant(view, power_cap.of.name), self._meant(view, power_cap.leads.name)
        mine = list[CappedNode]()
        for some in slices(there.values(), MEASURED_AT_ONCE):
            mine += (
                self._measured(one, sensors, leads=leads is not None and leads(nodes[one.name]))
                for one in some
                if of is None or of(nodes[one.name])
            )
            yield READING_EACH * len(some)
        found = {one.name: (one.restraint, "") for one in mine}
        # What is off draws next to nothing, and is measured by nobody.
        mine = [one for one in mine if one.watts is not None or _is_on(nodes[one.name])]
        calm_s = now - self._changed.get(view.name, now)
        if calm_s >= SETTLE_S or view.name not in self._changed:
            decision = decide_cap(mine, cap, calm_s=calm_s)
            why = f"{view.name}: {decision.why or 'there is room again'}"
            found |= {name: (to, why) for name, to in decision.restraints.items()}
        return found

    def _meant(self, view: EntityView, field: str) -> Callable[[EntityView], bool] | None:
        """The nodes that a field of a cap selects; None where it says nothing."""
        text = view.desired_value(field)
        if text is None:
            return None
        selector = parse_selector(str(text) or ALL)
        return lambda one: self._source.queries.means(selector, parse_entity(one.entity))

    def _node(self, view: EntityView, held: frozenset[str]) -> CappedNode:
        """A node, without what is measured of it."""
        desired = view.desired.get(node.power_profile.name)
        ours = _is_ours(view)
        known = view.known_value(node.power_profile.name)
        in_force = None if known is None else _RESTRAINTS.get(str(known))
        said = _RESTRAINTS[str(desired.value)] if ours and desired is not None else None
        holder = self._jobs.queue.holders.get(view.name)
        return CappedNode(
            view.name,
            restraint=(in_force or Restraint.NONE) if said is None else said,
            in_force=in_force,
            free=desired is None or ours,
            ours=ours,
            busy=view.name in held or (holder is not None and bool(holder.held)),
            hot=any(self._is_of_heat(one.sensor) for one in self._ward.symptoms(view.name)),
        )

    def _measured(self, one: CappedNode, sensors: str, *, leads: bool) -> CappedNode:
        last = self._board.last(parse_entity(f"{node.kind.name}:{one.name}"))
        watts = [each.value for name, each in last.items() if is_named(sensors, name)]
        inlets = [each.value for name, each in last.items() if is_named(INLETS, name)]
        return one.measured(
            watts=sum(watts) if watts else None,
            inlet_celsius=max(inlets, default=None),
            leads=leads,
        )

    def _is_of_heat(self, sensor: str) -> bool:
        reading = self._board.reading(node.kind.name, sensor)
        return reading is not None and reading.unit == CELSIUS


def _cap(view: EntityView) -> PowerCap:
    watts = view.desired_value(power_cap.watts.name)
    celsius = view.desired_value(power_cap.inlet_celsius.name)
    return PowerCap(
        None if watts is None else int(watts), None if celsius is None else int(celsius)
    )


def _is_ours(view: EntityView) -> bool:
    desired = view.desired.get(node.power_profile.name)
    return desired is not None and desired.owner == WHO


def _is_on(view: EntityView) -> bool:
    return view.known_value(node.power.name) != Power.OFF


def _patch(view: EntityView, there: CappedNode, to: Restraint, why: str) -> Patch:
    """The changes of a node's desired values; none where they are right."""
    profile, words = node.power_profile.name, node.power_why.name
    if to is not there.restraint and (to > there.restraint or there.ours):
        return {profile: str(PROFILES[to]), words: cut(why, node.POWER_WHY_BYTES_MAX)}
    if there.ours and to is Restraint.NONE and there.in_force is Restraint.NONE:
        # It is as it was before it was lowered, and a person's to change again.
        return {profile: None, words: None}
    return {}
