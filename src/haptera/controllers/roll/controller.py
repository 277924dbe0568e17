"""The controller of rolls: reads how systems stand, and writes which image is desired of them."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from haptera.controllers.roll.decide import RollMoves, next_moves
from haptera.controllers.roll.observe import is_heard, member_of, order_of, systems_of
from haptera.kinds import node, roll, system
from haptera.kinds.roll import HALTED_BYTES_MAX
from haptera.model.answers.views import EntityView
from haptera.sdk import Cluster, Conflict, Controller
from haptera.sdk.boundary import Boundary

# Time passes deadlines, and makes of the silent the vanished: so often that is looked at.
TICK_S: Final = 2.0
# Not oftener than this is decided anew.
REST_S: Final = 0.1
KINDS: Final = (node.kind.name, roll.kind.name, system.kind.name)


@dataclass(frozen=True)
class RollSettings:
    """After how long a silence a system counts as vanished, and holds nothing up any more."""

    vanished_after_s: float = 300.0


@dataclass(slots=True)
class Silences:
    """Since when systems have not been heard of, as far as this process knows."""

    after_s: float
    since: dict[str, float] = field(default_factory=dict)

    def listen(self, views: Mapping[str, EntityView], now: float) -> None:
        """Take in who is heard of now."""
        silent = [
            one.entity
            for one in views.values()
            if one.kind == system.kind.name and not is_heard(one)
        ]
        self.since = {name: self.since.get(name, now) for name in silent}

    def vanished(self, name: str, now: float) -> bool:
        return name in self.since and now - self.since[name] >= self.after_s


controller = Controller("roll", settings=RollSettings)


@controller.run
async def keep_rolling(cluster: Cluster[RollSettings]) -> None:
    """Bring each roll further whenever anything changes."""
    silences = Silences(cluster.settings.vanished_after_s)
    async for changes in cluster.watch(kinds=KINDS, tick_s=TICK_S):
        views = changes.now
        now = asyncio.get_running_loop().time()
        silences.listen(views, now)
        for name in sorted(views):
            if views[name].kind == roll.kind.name:
                # Where another was faster, the result will be announced.
                with suppress(Conflict), Boundary(name, (Conflict,)):
                    await _bring_on(cluster, views[name], views, silences, now)
        await asyncio.sleep(REST_S)


async def _bring_on(
    cluster: Cluster[RollSettings],
    one: EntityView,
    views: Mapping[str, EntityView],
    silences: Silences,
    now: float,
) -> None:
    """Write what this roll does next, in one piece, in the name of its owner."""
    wall_s = cluster.wall_s()
    order = order_of(one, wall_s=wall_s)
    systems = systems_of(one, views.values())
    if not systems:
        return
    members = [
        member_of(
            each,
            views,
            order.image,
            vanished=silences.vanished(each.entity, now),
            wall_s=wall_s,
        )
        for each in systems
    ]
    moves = next_moves(order, members)
    patches = _patches(one, views, moves)
    if moves.finish:
        patches[one.entity] = {roll.finished.name: int(cluster.wall_s())}
    if patches:
        await cluster.write(patches, owner=one.desired[roll.image.name].owner)


def _patches(
    one: EntityView, views: Mapping[str, EntityView], moves: RollMoves
) -> dict[str, dict[str, str | int | None]]:
    """The moves as what is desired: image and spare exchanged, and why it halts, if it does."""
    patches: dict[str, dict[str, str | int | None]] = {}
    for name in (*moves.take, *moves.give_back):
        held = views[name].desired
        image, spare = held[system.image.name].value, held[system.spare.name].value
        patches[name] = {system.image.name: spare, system.spare.name: image}
    halted = one.desired.get(roll.halted.name)
    text = None if moves.halt is None else _cut(moves.halt)
    if text != (None if halted is None else halted.value):
        patches[one.entity] = {roll.halted.name: text}
    return patches


def _cut(text: str) -> str:
    return text.encode()[:HALTED_BYTES_MAX].decode(errors="ignore")
