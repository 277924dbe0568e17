"""How long does a turn of the core take at the most, when very much is to be planned at once?

A parent learns how many entities of one class are, each in a state of its own and with a goal of
its own, and takes turns until nothing is left to be done at once. The baseline is the same in one
turn: with no bound on what is planned in it.
"""

import gc
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from time import process_time

from haptera.core import catalog
from haptera.core.engine import Engine
from haptera.core.limits import S
from haptera.core.problem import Problem
from haptera.core.side import Side
from haptera.kinds import KINDS
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.effects import Call
from haptera.model.entity import EntityId
from haptera.model.events import Answered, Event, Ready, Ticked
from haptera.model.parts import Context, Manifest
from tests.core.shapes import drawn, entangled, in_chain, independent, joint, problem, services
from tests.core.tangle import at_parent, kind_of

ENTITIES = 50
SIDE = Side(Context.PARENT, None, 1, "benchmark", 5 * S)


@dataclass(frozen=True)
class Case:
    """A class of entities, by what can be done to them."""

    name: str
    problem: Problem


CASES = (
    Case("20 entangled", problem(entangled(20, Random(1)))),
    Case(
        "20 entangled, less one step each",
        problem([part for part in entangled(20, Random(2)) if not part.name.endswith("_to_3")]),
    ),
    Case("20 in a row", problem(in_chain(20))),
    Case("20 independent", problem(independent(20))),
    Case("a row of 4 and 16 services", problem(services(4, 16))),
    Case("6 x 3 changed together", problem(joint(6, 3, 30, Random(1)))),
    Case("6 x 2 changed together", problem(joint(6, 2, 60, Random(1)))),
)


def start(case: Case, entities: int) -> Engine:
    asked = at_parent(case.problem)
    random = Random(5)
    stored = [
        StoredEntity(
            EntityId("k", f"e{number}", None),
            {},
            "site",
            {name: Desired(value, "site") for name, value in drawn(asked, random).items()},
            1,
        )
        for number in range(entities)
    ]
    kinds = {**KINDS, "k": kind_of("k", asked)}
    manifest = Manifest("m", "1", Context.PARENT, asked.looks, asked.steps)
    return Engine(SIDE, catalog.Catalog(kinds, [manifest]), Stored(1, 1, stored, [], {}), 0, S)


def turns(case: Case, entities: int) -> list[float]:
    """What each turn has taken: the first learns how all of them are, the others only plan."""
    random = Random(6)
    engine = start(case, entities)
    calls = [one for one in engine.handle([Ready("m")], S) if isinstance(one, Call)]
    while due(engine):
        engine.handle([Ticked()], S)
    outcomes = {look.name: look.outcomes for look in case.problem.looks}
    answers = [Answered(call.id, random.choice(outcomes[call.part]), S) for call in calls]
    took = [timed(engine, answers)]
    while due(engine):
        took.append(timed(engine, [Ticked()]))
    return took


def due(engine: Engine) -> bool:
    deadline = engine.deadline()
    return deadline is not None and deadline <= S


def timed(engine: Engine, events: Iterable[Event]) -> float:
    """CPU time in ms: what else the machine does is not the core's."""
    gc.collect()
    began = process_time()
    engine.handle(events, S)
    return (process_time() - began) * 1e3


def main() -> None:
    entities = int(sys.argv[1]) if len(sys.argv) > 1 else ENTITIES
    print(f"{entities} entities, each with a state and a goal of its own; ms of CPU")
    print(f"{'':34}{'learning':>10}{'turns':>7}{'median':>9}{'longest':>9}{'unbounded':>11}")
    bound = catalog.TURN_WORK_MAX
    for case in CASES:
        first, *rest = took = turns(case, entities)
        catalog.TURN_WORK_MAX = 1 << 60
        whole = turns(case, entities)[0]
        catalog.TURN_WORK_MAX = bound
        print(
            f"{case.name:34}{first:10.1f}{len(rest):7}{statistics.median(rest or took):9.1f}"
            f"{max(rest, default=0):9.1f}{whole:11.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
