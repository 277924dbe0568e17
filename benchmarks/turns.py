"""How long does a turn of the core take at the most, when very much is to be planned at once?

A parent learns how many entities of one class are, each in a state of its own and with a goal of
its own, and takes turns until nothing is left to be done at once. Then each of them is explained,
and the module that serves them is replaced by one with other parts, which are judged first. The
baseline is the first of it in one turn: with no bound on what is planned in it.

Then very much happens at once to nodes in few states: as many events as there are nodes, or one
that concerns all of them. The baseline takes that in, and decides on all of them, in one turn.
Beside it the longest turn with Python's garbage collector as it is (`collected`), and as a parent
has it (`frozen`): all other figures are without it.
"""

import gc
import statistics
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from time import process_time

from haptera.core.desired import proposal_validation as checks
from haptera.core.engine import Engine
from haptera.core.modules import catalog
from haptera.core.state import allowance
from haptera.core.state import intake as taking
from haptera.core.state.intake import admit
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.core.views.query import explained
from haptera.kinds import KINDS
from haptera.model.changes import Desired, SetDesired, Stored, StoredEntity
from haptera.model.declared.schema import Attribute
from haptera.model.effects import Call, Effect, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Answered,
    Ended,
    Event,
    Exited,
    Proposed,
    Ready,
    Ticked,
    Written,
)
from haptera.model.parts import Context, Look, Manifest, Requirement, Step
from haptera.planner.domain.problem import Problem
from haptera.runtime.garbage import old_objects_frozen
from tests.core.scenario import ATTRIBUTES, BMC
from tests.planner.shapes import drawn, entangled, in_chain, independent, joint, problem, services
from tests.planner.tangle import at_parent, kind_of

ENTITIES = 50
NODES = 10_000
CLASSES = 32
MODEL = "model"
SIDE = Side(Context.PARENT, None, 1, "benchmark", 5 * S)


@dataclass(frozen=True)
class Case:
    """A class of entities, by what can be done to them."""

    name: str
    problem: Problem
    classes: int = 1


def by_model(classes: int, count: int) -> Problem:
    """So many switches, which each class of entities has parts of its own for."""
    whole = problem(independent(count))
    looks, steps = list[Look](), list[Step]()
    for number in range(classes):
        where = (Requirement(MODEL, (f"m{number}",)),)
        looks += (replace(one, name=f"{one.name}_{number}", requires=where) for one in whole.looks)
        steps += (replace(one, name=f"{one.name}_{number}", requires=where) for one in whole.steps)
    return Problem(whole.variables, {MODEL: None}, tuple(looks), tuple(steps))


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
    Case(f"{CLASSES} classes of 4 switches", by_model(CLASSES, 4), CLASSES),
)


def start(case: Case, entities: int) -> Engine:
    asked = at_parent(case.problem)
    random = Random(5)
    stored = [
        StoredEntity(
            EntityId("k", f"e{number}", None),
            {MODEL: f"m{number % case.classes}"},
            "site",
            {name: Desired(value, "site") for name, value in drawn(asked, random).items()},
            1,
        )
        for number in range(entities)
    ]
    kind = replace(kind_of("k", asked), attributes=(Attribute("k", MODEL),))
    kinds = {**KINDS, "k": kind}
    manifest = Manifest("m", "1", Context.PARENT, asked.looks, asked.steps)
    return Engine(SIDE, catalog.Catalog(kinds, [manifest]), Stored(1, 1, stored, [], {}), 0, S)


def settle(case: Case, entities: int) -> tuple[Engine, list[float]]:
    """What each turn has taken: the first learns how all of them are, the others only plan."""
    random = Random(6)
    engine = start(case, entities)
    rest(engine)
    calls = [one for one in rest(engine, Ready("m")) if isinstance(one, Call)]
    outcomes = {look.name: look.outcomes for look in case.problem.looks}
    answers = [Answered(call.id, random.choice(outcomes[call.part]), S) for call in calls]
    return engine, turns(engine, answers)


def rest(engine: Engine, *events: Event) -> list[Effect]:
    """The effects of the turn that takes these in, and of all that follow at once."""
    effects = engine.handle(events, S)
    while due(engine):
        effects += engine.handle([Ticked()], S)
    return effects


def turns(
    engine: Engine, events: Iterable[Event], effects: list[Effect] | None = None
) -> list[float]:
    """What each turn has taken that takes some of these in, and all that follow at once."""
    inbox, took = deque(events), list[float]()
    told = [] if effects is None else effects
    while inbox or due(engine) or not took:
        batch = admit(inbox) or [Ticked()]
        took.append(timed(lambda batch=batch: told.extend(engine.handle(batch, S))))
    return took


def explaining(engine: Engine) -> list[float]:
    """What it takes to explain each entity, for whoever asks."""
    rows = [row for row in engine.table if row.id.kind == "k"]
    return [timed(partial(explained, row, None, engine.catalog, (), S)) for row in rows]


def taking_over(engine: Engine) -> list[float]:
    """What each turn takes in which the module's next process, which has one step less, serves."""
    module, old = EntityId("module", "m", None), engine.catalog.manifests["m"]
    effects = rest(engine, Proposed(1, (SetDesired(module, "settings", "{}", "user:x"),)))
    (write,) = (one for one in effects if isinstance(one, Write))
    rest(engine, Written(write.ticket, 100))
    new = replace(old, version="2", steps=old.steps[:-1])
    return turns(engine, [Ready("m", 2, "2", new)])


@contextmanager
def unbounded() -> Iterator[None]:
    """Meanwhile a turn does all that is to be done."""
    before = allowance.TURN_WORK_MAX, taking.TAKEN_WORK_MAX, checks.CHECKED_WORK_MAX
    allowance.TURN_WORK_MAX = taking.TAKEN_WORK_MAX = checks.CHECKED_WORK_MAX = 1 << 60
    yield
    allowance.TURN_WORK_MAX, taking.TAKEN_WORK_MAX, checks.CHECKED_WORK_MAX = before


def due(engine: Engine) -> bool:
    deadline = engine.deadline()
    return deadline is not None and deadline <= S


def timed(act: Callable[[], object]) -> float:
    """CPU time in ms: what else the machine does is not the core's."""
    began = process_time()
    act()
    return (process_time() - began) * 1e3


def fleet(nodes: int) -> dict[str, list[float]]:
    """What each turn has taken, by what happened to all nodes at once."""
    on = [StoredEntity(node_id(f"n{number}"), ATTRIBUTES, "site", {}, 1) for number in range(nodes)]
    engine = Engine(SIDE, catalog.Catalog(KINDS, [BMC]), Stored(1, 1, on, [], {}), 0, S)
    told: list[Effect] = []
    took: dict[str, list[float]] = {}

    def happens(what: str, events: Iterable[Event]) -> None:
        events = list(events)
        told.clear()
        took[what] = turns(engine, events, told)

    def calls() -> list[int]:
        return [one.id for one in told if isinstance(one, Call)]

    happens("the parent starts", ())
    happens("a module starts", [Ready("bmc")])
    happens("answers", [Answered(call, "off", S) for call in calls()])
    wanted = tuple(SetDesired(one.entity, "power", "on", "site") for one in on)
    happens("a site is proposed", [Proposed(1, wanted)])
    happens("and written", [Written(one.ticket, 2) for one in told if isinstance(one, Write)])
    happens("intents written", [Written(one.ticket, 3) for one in told if isinstance(one, Write)])
    happens("steps end", [Ended(call) for call in calls()])
    happens("the module dies", [Exited("bmc", "was killed")])
    return took


@contextmanager
def collected() -> Iterator[None]:
    """Meanwhile Python collects its garbage."""
    gc.enable()
    yield
    gc.disable()


def bursts(nodes: int) -> None:
    """Print the longest turn of each burst, beside all of it in one turn."""
    heads = ("turns", "longest", "second", "in one", "collected", "frozen")
    print(f"\n{nodes:,} nodes, and what happens to all of them at once")
    print(" " * 34 + "".join(f"{head:>10}" for head in heads))
    bounded = fleet(nodes)
    with unbounded():
        whole = fleet(nodes)
    with collected():
        as_it_is = fleet(nodes)
        with old_objects_frozen():
            frozen = fleet(nodes)
    for what, took in bounded.items():
        second, longest = sorted([0.0, *took])[-2:]
        others = (max(one[what]) for one in (whole, as_it_is, frozen))
        figures = (longest, second, *others)
        print(f"{what:34}{len(took):10}" + "".join(f"{figure:10.1f}" for figure in figures))


def main() -> None:
    entities = int(sys.argv[1]) if len(sys.argv) > 1 else ENTITIES
    gc.disable()  # What a collection takes is none of a turn's; `bursts` tells it apart.
    print(f"{entities} entities, each with a state and a goal of its own; ms of CPU, the longest")
    heads = ("learning", "turns", "median", "longest", "explain", "takeover", "unbounded")
    print(" " * 34 + "".join(f"{head:>10}" for head in heads))
    for case in CASES:
        engine, (first, *rest) = settle(case, entities)
        told, taken = max(explaining(engine)), max(taking_over(engine))
        with unbounded():
            whole = max(settle(case, entities)[1])
        print(
            f"{case.name:34}{first:10.1f}{len(rest):10}{statistics.median(rest or [first]):10.1f}"
            f"{max(rest, default=0):10.1f}{told:10.1f}{taken:10.1f}{whole:10.1f}",
            flush=True,
        )
        gc.collect()
    bursts(NODES)


if __name__ == "__main__":
    main()
