"""How long does a turn of the core take at the most, when very much is to be planned at once?

A parent learns how many entities of one class are, each in a state of its own and with a goal of
its own, and takes turns until nothing is left to be done at once. Then each of them is explained,
and the module that serves them is replaced by one with other parts, which are judged first. The
baseline is the first of it in one turn: with no bound on what is planned in it.
"""

import gc
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from time import process_time

from haptera.core import catalog
from haptera.core.engine import Engine
from haptera.core.limits import S
from haptera.core.problem import Problem
from haptera.core.query import explained
from haptera.core.side import Side
from haptera.kinds import KINDS
from haptera.model.changes import Desired, SetDesired, Stored, StoredEntity
from haptera.model.effects import Call, Write
from haptera.model.entity import EntityId
from haptera.model.events import Answered, Event, Proposed, Ready, Ticked, Written
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
    Case("12 entangled", problem(entangled(12, Random(1)))),
    Case("20 in a row", problem(in_chain(20))),
    Case("20 independent", problem(independent(20))),
    Case("a row of 4 and 16 services", problem(services(4, 16))),
    Case("6 x 3 changed together", problem(joint(6, 3, 30, Random(1)))),
    Case("2 x 8 changed together", problem(joint(2, 8, 60, Random(1)))),
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


def settle(case: Case, entities: int) -> tuple[Engine, list[float]]:
    """What each turn has taken: the first learns how all of them are, the others only plan."""
    random = Random(6)
    engine = start(case, entities)
    calls = [one for one in engine.handle([Ready("m")], S) if isinstance(one, Call)]
    while due(engine):
        engine.handle([Ticked()], S)
    outcomes = {look.name: look.outcomes for look in case.problem.looks}
    answers = [Answered(call.id, random.choice(outcomes[call.part]), S) for call in calls]
    return engine, turns(engine, answers)


def turns(engine: Engine, events: Iterable[Event]) -> list[float]:
    """What the turn that takes these in has taken, and all that follow at once."""
    took = [timed(lambda: engine.handle(events, S))]
    while due(engine):
        took.append(timed(lambda: engine.handle([Ticked()], S)))
    return took


def explaining(engine: Engine) -> list[float]:
    """What it takes to explain each entity, for whoever asks."""
    rows = [row for row in engine.table if row.id.kind == "k"]
    return [timed(partial(explained, row, None, engine.catalog, (), S)) for row in rows]


def taking_over(engine: Engine) -> list[float]:
    """What each turn takes in which the module's next process, which has one step less, serves."""
    module, old = EntityId("module", "m", None), engine.catalog.manifests["m"]
    effects = engine.handle([Proposed(1, (SetDesired(module, "settings", "{}", "user:x"),))], S)
    (write,) = (one for one in effects if isinstance(one, Write))
    engine.handle([Written(write.ticket, 100)], S)
    new = replace(old, version="2", steps=old.steps[:-1])
    return turns(engine, [Ready("m", 2, "2", new)])


def due(engine: Engine) -> bool:
    deadline = engine.deadline()
    return deadline is not None and deadline <= S


def timed(act: Callable[[], object]) -> float:
    """CPU time in ms: what else the machine does is not the core's."""
    gc.collect()
    began = process_time()
    act()
    return (process_time() - began) * 1e3


def main() -> None:
    entities = int(sys.argv[1]) if len(sys.argv) > 1 else ENTITIES
    print(f"{entities} entities, each with a state and a goal of its own; ms of CPU, the longest")
    heads = ("learning", "turns", "median", "longest", "explain", "takeover", "unbounded")
    print(" " * 34 + "".join(f"{head:>10}" for head in heads))
    bound = catalog.TURN_WORK_MAX
    for case in CASES:
        engine, (first, *rest) = settle(case, entities)
        told, taken = max(explaining(engine)), max(taking_over(engine))
        catalog.TURN_WORK_MAX = 1 << 60
        whole = settle(case, entities)[1][0]
        catalog.TURN_WORK_MAX = bound
        print(
            f"{case.name:34}{first:10.1f}{len(rest):10}{statistics.median(rest or [first]):10.1f}"
            f"{max(rest, default=0):10.1f}{told:10.1f}{taken:10.1f}{whole:10.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
