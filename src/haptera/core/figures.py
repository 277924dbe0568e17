"""Figures of an engine: entities by condition, neighbours heard, outcomes of steps."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from haptera.core.engine import Engine
from haptera.core.sync.peers import Tier
from haptera.core.views.query import summary
from haptera.planner.domain.pieces import Pieces


@dataclass(frozen=True, slots=True)
class ModuleFigures:
    """How many processes of a module were started so far, and whether one serves now."""

    started: int
    serves: bool


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers since the process began, and as they are now.

    `entities` are by kind and condition; `steps` by path and whether they worked; `usual_ns` is
    what parts usually take; `refused` counts by child its reports on entities of others.
    """

    entities: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    children: Mapping[Tier, int] = field(default_factory=dict)
    steps: Mapping[tuple[str, bool], int] = field(default_factory=dict)
    usual_ns: Mapping[str, int] = field(default_factory=dict)
    modules: Mapping[str, ModuleFigures] = field(default_factory=dict)
    brakes: bool = False
    refused: Mapping[str, int] = field(default_factory=dict)


def figures(engine: Engine, now: int) -> Pieces[Figures]:
    """All of an engine's figures."""
    stands = yield from summary([*engine.table])
    heard = Counter(peer.tier for peer in engine.neighbours)
    return Figures(
        stands.counts,
        {tier: heard[tier] for tier in Tier},
        dict(engine.hands.acts.outcomes),
        dict(engine.neighbours.usual),
        {
            name: ModuleFigures(
                engine.hands.supervisor.started(name), engine.hands.supervisor.ready(name)
            )
            for name in engine.catalog.modules(engine.side.context)
        },
        engine.safety.unrest.brake(now).why is not None,
        dict(engine.neighbours.refused),
    )
