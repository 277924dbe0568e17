"""How fast the planner is, beside a blind search, the explicit graph and a classical planner.

    python -m benchmarks.planner [ROUNDS]

All answer the same problems in this one run, each in one thread. `again` plans as a worker
does. What is measured is CPU time, and of
several rounds the fastest counts: others may work on the machine, and only ratios are worth
comparing. The classical planner is pyperplan, where it is installed: it is handed its task ready
made, so that neither parsing nor grounding counts against it; which way it goes hangs on the order
of its sets, and so on PYTHONHASHSEED (0 where none is set). The original's own figures, printed
beside, are from another machine of the same size.
"""

import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from time import thread_time_ns

from benchmarks.explicit_graph import ExplicitGraph
from benchmarks.planning import (
    Case,
    entangled,
    facts_at_start,
    facts_wanted,
    independent,
    operators,
    row,
    services,
)
from haptera.core.modules.catalog import Catalog
from haptera.core.state.allowance import TurnAllowance
from haptera.core.state.entity.desired_state import DesiredState
from haptera.core.state.row import EntityState
from haptera.kinds import KINDS
from haptera.model.chain import Chain
from haptera.model.entity import node_id
from haptera.modules import load
from haptera.planner.domain.bars import NO_BARS
from haptera.planner.domain.bitstate import strip
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.task import Memory
from haptera.planner.plan_query import query_of
from haptera.planner.planner import plan
from haptera.planner.search.factors import Factor, factors_of
from haptera.planner.search.policy_cache import PolicyCache
from haptera.planner.search.search_budget import SearchBudget

ROUNDS = 3
BUDGET = 200_000
# A blind search gives up here, the explicit graph is not tried above, pyperplan is stopped then.
BLIND_STATES_MAX = 200_000
GRAPH_VARIABLES_MAX = 8
CLASSICAL_S_MAX = 10.0
NS_PER_MS = 1_000_000
ROUND_MS, LONG_MS = 20, 1_000
RUNS_MAX = 1_000
# How many times sooner than the classical planner it is to be.
GOAL = 10

SIZES = (2, 4, 6, 8, 10, 20, 40)
ENTANGLED = (8, 12, 20)
SEEDS = range(5)
FLEET = 100_000
# Of the original: variables, then what building its graph and one plan took, in seconds.
ORIGINAL_S = {
    2: (0.001, 0.0001),
    4: (0.012, 0.0006),
    6: (0.3, 0.017),
    8: (28, 1.3),
}
ORIGINAL_PLANS_PER_S = 6_580


@dataclass(frozen=True)
class Took:
    """What one of the contenders needed, and the cost of its chain; None where it gave up."""

    ms: float
    cost: int | None


class TooLongError(Exception):
    """A contender was stopped."""


def ours(case: Case, domain: Domain, states: int = BUDGET) -> int | None:
    question = case.question
    start = domain.start(question.observed, question.remembered)
    found = plan(domain, start, question.desired, SearchBudget(states))
    return found.cost if isinstance(found, Chain) else None


def ours_again(
    case: Case,
    domain: Domain,
    parts: list[Factor],
    states: int = BUDGET,
) -> int | None:
    """With all that was prepared for the class, but nothing kept of what was searched before."""
    for part in parts:
        told = part.tables
        anew = PolicyCache(part.task, part.states_max, ahead=told.ahead, stages=told.stages)
        vars(part)["tables"] = anew
    return ours(case, domain, states)


def searched(case: Case, domain: Domain) -> list[Factor]:
    """The parts of the goal of which searches tell: of the others all is worked out ahead."""
    parts = factors_of(domain, case.question.desired, Memory.TRUSTED).parts
    return [one for one in parts if one.tables.ahead is None]


def blind(case: Case, domain: Domain) -> int | None:
    """The cheapest first, on the same integers, with no idea of where the goal is."""
    question = case.question
    start = domain.start(question.observed, question.remembered) | domain.touched
    wanted = domain.wanted(question.desired)
    moves = [(one.forbidden, one.keep, one.put, one.part.cost, one.upsets) for one in domain.moves]
    best, queue = {start: 0}, [(0, start)]
    while queue and len(best) < BLIND_STATES_MAX:
        cost, state = heappop(queue)
        if state & wanted == wanted:
            return cost
        if cost > best[state]:
            continue
        for forbidden, keep, put, more, upsets in moves:
            if not state & forbidden:
                after = strip(state & keep | put, upsets)
                if after not in best or cost + more < best[after]:
                    best[after] = cost + more
                    heappush(queue, (cost + more, after))
    return None


def explicit(case: Case) -> int | None:
    return ExplicitGraph(case.problem).cost(case.question.observed, case.question.desired)


def classical(case: Case, domain: Domain, search: str, heuristic: str) -> Callable[[], int | None]:
    """pyperplan's search, with its task made beforehand."""
    from pyperplan.planner import HEURISTICS, SEARCHES  # only here: it may not be installed
    from pyperplan.task import Operator, Task

    made = operators(case.problem)
    facts = set().union(*(one.needs | one.adds | one.deletes for one in made))
    acts = [Operator(one.name, one.needs, one.adds, one.deletes) for one in made]
    start, wanted = facts_at_start(case, domain), facts_wanted(case)
    task = Task(case.name, facts | start | wanted, start, wanted, acts)

    def run() -> int | None:
        with stopped_after(CLASSICAL_S_MAX):
            found = SEARCHES[search](task, HEURISTICS[heuristic](task))
        return None if found is None else len(found)

    return run


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def timed(run: Callable[[], int | None], rounds: int) -> Took:
    """The fastest of the rounds, each of as many runs as fill it; a long one is its own round."""
    once = ran(run, 1)
    count = max(1, int(ROUND_MS / max(once.ms, ROUND_MS / RUNS_MAX)))
    rest = [] if once.ms > LONG_MS else [ran(run, count) for _ in range(rounds)]
    return min([once, *rest], key=lambda took: took.ms)


def ran(run: Callable[[], int | None], count: int) -> Took:
    cost = None
    begun = thread_time_ns()
    for _ in range(count):
        try:
            cost = run()
        except TooLongError:
            cost = None
    return Took((thread_time_ns() - begun) / count / NS_PER_MS, cost)


def contenders(case: Case) -> dict[str, Callable[[], int | None]]:
    """Who answers this problem; each begins with what was prepared, as `haptera` does."""
    domain = compile_class(case.problem)
    parts = searched(case, domain)
    found: dict[str, Callable[[], int | None]] = {
        "compile": lambda: compiled(case),
        "first": lambda: ours(case, compile_class(case.problem)),
        "again": lambda: ours_again(case, domain, parts),
        # With no states to prove anything by: what tables tell, or else the first chain found.
        "soon": lambda: ours_again(case, domain, parts, states=0),
        "blind": lambda: blind(case, domain),
    }
    # The graph knows no memory: it wishes where the planner looks, but has the same states.
    if len(case.problem.variables) <= GRAPH_VARIABLES_MAX:
        found["graph"] = lambda: explicit(case)
    if has_pyperplan():
        found["gbf hff"] = classical(case, domain, "gbf", "hff")
        found["A* lm"] = classical(case, domain, "astar", "landmark")
    return found


def compiled(case: Case) -> None:
    compile_class(case.problem)


def has_pyperplan() -> bool:
    try:
        import pyperplan  # noqa: F401  (a question, not a use)
    except ImportError:
        return False
    return True


NAMES = ("compile", "first", "again", "soon", "blind", "graph", "gbf hff", "A* lm")


def show(case: Case, rounds: int) -> dict[str, Took]:
    took = {name: timed(run, rounds) for name, run in contenders(case).items()}
    cells = [cell(name, took.get(name)) for name in NAMES]
    print(f"{case.name:24}" + "".join(f"{one:>18}" for one in cells), flush=True)
    return took


def cell(name: str, took: Took | None) -> str:
    if took is None:
        return "-"
    if name == "compile":
        return f"{took.ms:.2f}"
    return f"{took.ms:.2f} ({'gave up' if took.cost is None else took.cost})"


def ratios(results: dict[str, dict[str, Took]]) -> Iterator[str]:
    """Against each other contender: how many times as long it took, where both have a chain."""
    for rival in NAMES[5:]:
        pairs = [
            (case, took["again"], took["first"], took[rival])
            for case, took in results.items()
            if rival in took and took["again"].cost is not None
        ]
        both = [one for one in pairs if one[3].cost is not None]
        if not both:
            continue
        again = [theirs.ms / mine.ms for _, mine, _, theirs in both]
        first = [theirs.ms / mine.ms for _, _, mine, theirs in both]
        dearer = sum((mine.cost or 0) > (theirs.cost or 0) for _, mine, _, theirs in both)
        cheaper = sum((mine.cost or 0) < (theirs.cost or 0) for _, mine, _, theirs in both)
        yield (
            f"{rival:8} {len(both):2} problems: {statistics.median(again):,.1f} times as long in"
            f" the median ({min(again):,.1f} to {max(again):,.1f}); compiling counted:"
            f" {statistics.median(first):,.1f} ({min(first):,.1f} to {max(first):,.1f});"
            f" gave up {len(pairs) - len(both)}; our cost is less in {cheaper}, more in {dearer}"
        )


def show_no_dearer(results: dict[str, dict[str, Took]]) -> None:
    """How many times sooner there is a chain that costs no more than the classical planner's."""
    print(
        f"\na chain no dearer, by `soon` or `again`: {GOAL} times sooner or more (one stopped: as"
    )
    print("though it had found some then)")
    for rival in NAMES[-2:]:
        found = {name: sooner(took, took[rival]) for name, took in results.items() if rival in took}
        for word in ("entangled", ""):
            some = {name: one for name, one in found.items() if word in name}
            missed = [f"{name} ({one:.1f})" for name, one in some.items() if one < GOAL]
            if some:
                told = f"{word or 'all'}: {len(some) - len(missed)} of {len(some)}"
                print(f"{rival:8} {told}; less: {', '.join(missed) or 'none'}")


def sooner(took: dict[str, Took], rival: Took) -> float:
    """Against the first of ours that costs no more; 0 where none does."""
    ours = (took["soon"], took["again"])
    good = [one.ms for one in ours if one.cost is not None and one.cost <= (rival.cost or one.cost)]
    return rival.ms / min(good) if good else 0.0


def show_original(results: dict[str, dict[str, Took]]) -> None:
    print("\nthe original (its own machine), beside the graph here and the planner, in ms")
    for count, (build_s, plan_s) in ORIGINAL_S.items():
        took = results[f"{count} independent"]
        graph, first, again = (took[name].ms for name in ("graph", "first", "again"))
        print(
            f"{count} independent: original {build_s * 1000:,.0f} + {plan_s * 1000:,.1f} a plan;"
            f" graph {graph:,.1f}, {graph / first:,.0f} times ours with compiling;"
            f" ours {first:.2f} with compiling ({(build_s + plan_s) * 1000 / first:,.0f} times less"
            f" than the original), {again:.3f} a plan ({plan_s * 1000 / again:,.0f} times less)"
        )


def show_fleet(rounds: int) -> None:
    """All nodes of a fleet planned anew; they are in few states, so that few are searched."""
    catalog = Catalog(KINDS, [load(name).manifest() for name in ("labnode", "service")])
    nodes = [
        EntityState(node_id(f"n{number}"), KINDS["node"], DesiredState({"platform": "labnode"}))
        for number in range(FLEET)
    ]
    domain = catalog.domain(nodes[0], None)
    states = [
        domain.start({"power": power, **agent}, {})
        for power in ("off", "on", "hung")
        for agent in ({}, {"agent": "up"})
    ]
    goal = {"power": "on", "agent": "up"}
    searched = timed(lambda: search_each(domain, states, goal), rounds).ms / len(states)
    for starts in (states[:1], states):
        took = timed(lambda starts=starts: replan(catalog, nodes, starts, goal), rounds)
        print(
            f"{FLEET:,} nodes in {len(starts)} states: {took.ms:,.0f} ms by the catalog;"
            f" a search for each would take {searched * FLEET / took.ms:,.0f} times as long,"
            f" the original {FLEET / ORIGINAL_PLANS_PER_S * 1000 / took.ms:,.0f} times"
        )


def search_each(domain: Domain, states: list[int], goal: dict[str, str]) -> int:
    for state in states:
        plan(domain, state, goal)
    return 0


def replan(
    catalog: Catalog, nodes: list[EntityState], starts: list[int], goal: dict[str, str]
) -> int:
    for number, node in enumerate(nodes):
        start, domain = starts[number % len(starts)], catalog.domain(node, None)
        catalog.plans.plan(query_of(domain, start, goal, NO_BARS), TurnAllowance())
    return 0


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    if not has_pyperplan():
        print("pyperplan is not installed (pip install pyperplan): it is left out")
    print(f"ms of CPU, the fastest of {rounds} rounds (cost); {os.cpu_count()} processors")
    print(f"{'':24}" + "".join(f"{name:>18}" for name in NAMES))
    results = {
        case.name: show(case, rounds)
        for case in (
            *map(independent, SIZES),
            *map(row, SIZES),
            services(4, 36),
            *(entangled(count, seed) for count in ENTANGLED for seed in SEEDS),
        )
    }
    print("\neach other contender, beside `again`")
    for line in ratios(results):
        print(line)
    show_no_dearer(results)
    show_original(results)
    print()
    show_fleet(rounds)


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:
        again = [sys.executable, "-m", "benchmarks.planner", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    main()
