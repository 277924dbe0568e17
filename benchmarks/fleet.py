"""How soon the first part of a chain is told, and of all chains of a fleet, from any states.

    python -m benchmarks.fleet [ROUNDS]

All answer in this one run, from the same states, drawn so that hardly two are alike. Beside the
tables stand a search for each state, which is what each would take without them, and, for a fleet,
a look-up of whole chains by state, as entities that stand alike have it. Of several rounds the
fastest counts, in CPU time, for others may work on the machine; only ratios are worth comparing.
"""

import os
import sys
from collections.abc import Callable
from random import Random
from time import process_time_ns

from benchmarks.planning import Case, independent, row, services
from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.task import Memory
from haptera.planner.fleet.columns import Columns
from haptera.planner.fleet.states import States
from haptera.planner.planner import next_part, plan
from haptera.planner.search.a_star import SearchResult, search
from haptera.planner.search.factors import factors_of
from haptera.planner.search.search_budget import SearchBudget

ROUNDS = 5
# States that one round asks for the first part from, and that are searched from.
ASKED, SEARCHED = 500, 40
FLEET = 100_000
# States that a fleet is in, where entities stand alike.
FEW = 6
NS_PER_MS = 1_000_000


def drawn(domain: Domain, random: Random, count: int) -> list[int]:
    """Each variable known, remembered or unknown, stripped."""
    fields = list(domain.fields.values())
    return [domain.strip(sum(random.choice(field.bits) for field in fields)) for _ in range(count)]


def fastest(run: Callable[[], object], rounds: int) -> float:
    """In milliseconds of CPU time."""
    took = []
    for _ in range(rounds):
        begun = process_time_ns()
        run()
        took.append(process_time_ns() - begun)
    return min(took) / NS_PER_MS


def ready(case: Case) -> Domain:
    """The class compiled, and its tables made."""
    domain = compile_class(case.problem)
    start = domain.start(case.question.observed, case.question.remembered)
    assert isinstance(next_part(domain, start, case.question.desired), Operator)
    return domain


def searched(domain: Domain, case: Case, states: list[int]) -> None:
    """The whole route from each, as it is found where no table tells."""
    for part in factors_of(domain, case.question.desired, Memory.TRUSTED).parts:
        for state in states:
            root = state & part.task.within
            found = search(part.task, root, part.estimate, SearchBudget())
            assert isinstance(found, SearchResult)


def show_first_part(case: Case, rounds: int) -> None:
    goal = case.question.desired
    made = fastest(lambda: ready(case), rounds)
    domain = ready(case)
    states = drawn(domain, Random(1), ASKED)
    each = fastest(lambda: [next_part(domain, one, goal) for one in states], rounds) / ASKED
    apart = fastest(lambda: searched(domain, case, states[:SEARCHED]), 1) / SEARCHED
    links = max(len(plan(domain, one, goal).links) for one in states)
    print(
        f"{case.name:24} compiled, with tables: {made:5.1f} ms; the first part from each of"
        f" {ASKED} states (chains of up to {links}): {each * 1000:4.0f} us;"
        f" a search for each: {apart:6.2f} ms, {apart / each:5,.0f} times as long"
    )


def show_fleet(case: Case, rounds: int) -> None:
    goal, domain = case.question.desired, ready(case)
    words = drawn(domain, Random(1), FLEET)
    columns, plain = Columns(domain, words), States(domain, words)
    passed = fastest(lambda: columns.next_parts(goal), rounds)
    stripped = fastest(columns.strip, rounds)
    one_by_one = fastest(lambda: plain.next_parts(goal), 1)
    assert columns.next_parts(goal).tolist() == plain.next_parts(goal)
    apart = fastest(lambda: searched(domain, case, words[:SEARCHED]), 1) / SEARCHED * FLEET
    print(
        f"{case.name:24} {FLEET:,} entities in {len(set(words)):,} states: {passed:.1f} ms in one"
        f" pass ({stripped:.1f} to strip them first); {one_by_one:,.0f} ms one by one from the same"
        f" tables, {one_by_one / passed:,.0f} times as long; a search for each"
        f" {apart / 1000:,.0f} s, {apart / passed:,.0f} times"
    )
    few = words[:FEW] * (FLEET // FEW + 1)
    known = {word: plan(domain, word, goal) for word in few[:FEW]}
    columns = Columns(domain, few)
    passed = fastest(lambda: columns.next_parts(goal), rounds)
    kept = fastest(lambda: [known[word] for word in few], rounds)
    print(
        f"{'':24} … in {FEW} states: {passed:.1f} ms in one pass; {kept:.1f} ms where each state's"
        f" chain is kept in a dict"
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"CPU time, the fastest of {rounds} rounds; {os.cpu_count()} processors")
    for case in (independent(40), row(40), services(4, 36)):
        show_first_part(case, rounds)
    print()
    for case in (services(4, 8), services(4, 36), row(40)):
        show_fleet(case, rounds)


if __name__ == "__main__":
    main()
