"""Every way to plan, forced alone on each of many problems; and how often each decides.

Drawn by seeds, which is so fast that there can be 20,000 (`HYPOTHESIS_PROFILE=wide`). Of one that
fails the number is told; `question(Seeded(NUMBER))` draws it again, and the properties in
`test_methods.py` and `test_planner.py` make such ones small.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import pytest

from haptera.planner.domain.domain import Domain
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Memory
from haptera.planner.planner import plan
from haptera.planner.search.a_star import Found, SearchResult, Unsolvable
from haptera.planner.search.factors import factors_of
from haptera.planner.search.ff_heuristic import FFHeuristic
from haptera.planner.search.full_policy import solve
from haptera.planner.search.policy_cache import STATES_MAX, PolicyCache
from haptera.planner.search.policy_rollout import rollout
from haptera.planner.search.search_budget import SearchBudget
from haptera.planner.search.serial_subgoals import End, subgoals_of
from tests.planner.dice import Seeded
from tests.planner.strategies import Question, question
from tests.planner.test_methods import (
    Case,
    blind,
    bounded,
    case,
    decided_by,
    in_parts,
    model_cost,
    straight,
    verdict,
)
from tests.planner.test_planner import from_memory, hold_to_model

BATCHES = 20
EACH = {"ci": 50, "wide": 1_000}.get(os.environ.get("HYPOTHESIS_PROFILE", "dev"), 10)

pytestmark = [pytest.mark.slow, pytest.mark.wide, pytest.mark.timeout(300)]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_all_methods_agree_with_the_plain_model(
    batch: int, shares: Callable[[str], Counter[str]]
) -> None:
    for number in range(batch * EACH, (batch + 1) * EACH):
        drawn = question(Seeded(number))
        memory = Memory.DOUBTED if number % 4 == 0 else Memory.TRUSTED
        one = case(from_memory(drawn) if memory is Memory.DOUBTED else drawn, memory)
        try:
            forced = agree(one)
            agree_on_answer(one.domain, one.question)
        except AssertionError as error:
            error.add_note(f"problem {number}, memory {memory.name}")
            raise
        shares("parts of goals decided by").update(decided_by(one))
        shares("by tables, forced to use each").update([forced])


def agree(one: Case) -> str:
    """The same cost as the plain model, and but for the walk the same moves as each other.

    Returns whether tables told of it, forced.
    """
    found = blind(one)
    assert isinstance(found, SearchResult | Unsolvable)
    assert (found.cost if isinstance(found, SearchResult) else None) == model_cost(one)
    assert verdict(bounded(one)) == verdict(found)
    assert verdict(in_parts(one)) == verdict(found)
    assert (first := straight(one)) is None or verdict(first) == verdict(found)
    tables_tell = [agree_on_tables(one, tables, found) for tables in all_tables(one)]
    some = rollout(one.task, FFHeuristic(one.task), one.root, SearchBudget())
    if isinstance(some, SearchResult):
        assert isinstance(found, SearchResult)
        assert some.cost >= found.cost
    elif isinstance(some, Unsolvable):
        assert isinstance(found, Unsolvable)
    return "told" if any(tables_tell) else "no table"


def agree_on_tables(one: Case, tables: PolicyCache, found: Found) -> bool:
    """What these tell is what was found; whether they tell anything."""
    state = one.root & one.task.within
    known = tables.route(state)
    assert known is None or verdict(known) == verdict(found)
    return tables.next(state) is not End.UNKNOWN


def agree_on_answer(domain: Domain, asked: Question) -> None:
    """The planner's answer is the plain model's."""
    start = domain.start(asked.observed, asked.remembered)
    hold_to_model(asked, plan(domain, start, asked.desired))


def all_tables(one: Case) -> Iterator[PolicyCache]:
    """Of each kind those of the whole goal; if it is one part, what that has is not made again."""
    parts = factors_of(one.domain, one.question.desired, one.memory).parts
    own = parts[0].tables if len(parts) == 1 else None
    if own is not None and own.ahead is not None:
        ahead: Mapping[int, OperatorRow | End] | None = own.ahead
    else:
        ahead = solve(one.task, STATES_MAX)
    if own is not None and own.ahead is None:
        stages = own.stages
    else:
        stages = subgoals_of(one.task, STATES_MAX)
    yield PolicyCache(one.task, STATES_MAX, ahead=ahead)
    yield PolicyCache(one.task, STATES_MAX, stages=stages)
