"""Every way to plan, forced alone on each of many problems; and how often each decides.

Drawn by seeds, which is so fast that there can be 20,000 (`HYPOTHESIS_PROFILE=ci`). Of one that
fails the number is told; `question(Seeded(NUMBER))` draws it again, and the properties in
`test_methods.py` and `test_planner.py` make such ones small.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from haptera.core.allowance import Allowance
from haptera.core.factors import factors_of
from haptera.core.fleet.columns import Columns
from haptera.core.knowledge import Domain
from haptera.core.outlooks import Relaxation
from haptera.core.planner import plan
from haptera.core.scope import Memory
from haptera.core.search import Route, Walled
from haptera.core.solved import solve
from haptera.core.stages import stages_of
from haptera.core.tables import STATES_MAX, NextMoves
from haptera.core.walk import walk
from tests.core.dice import Seeded
from tests.core.fleet.test_columns import begins, told
from tests.core.strategies import Question, question
from tests.core.test_methods import (
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
from tests.core.test_planner import from_memory, hold_to_model

BATCHES = 20
EACH = {"ci": 1_000}.get(os.environ.get("HYPOTHESIS_PROFILE", "dev"), 10)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_all_methods_agree_with_the_plain_model(
    batch: int, shares: Callable[[str], Counter[str]]
) -> None:
    for number in range(batch * EACH, (batch + 1) * EACH):
        drawn = question(Seeded(number))
        memory = Memory.DOUBTED if number % 4 == 0 else Memory.TRUSTED
        one = case(from_memory(drawn) if memory is Memory.DOUBTED else drawn, memory)
        try:
            agree(one)
            agree_on_answer(one.domain, one.question)
        except AssertionError as error:
            error.add_note(f"problem {number}, memory {memory.name}")
            raise
        shares("parts of goals decided by").update(decided_by(one))


def agree(one: Case) -> None:
    """The same cost as the plain model, and but for the walk the same moves as each other."""
    found = blind(one)
    assert isinstance(found, Route | Walled)
    assert (found.cost if isinstance(found, Route) else None) == model_cost(one)
    assert verdict(bounded(one)) == verdict(found)
    assert verdict(in_parts(one)) == verdict(found)
    assert (first := straight(one)) is None or verdict(first) == verdict(found)
    for table in other_tables(one):
        known = table.route(one.root & one.scope.within)
        assert known is None or verdict(known) == verdict(found)
    some = walk(one.scope, Relaxation(one.scope), one.root, Allowance())
    if isinstance(some, Route):
        assert isinstance(found, Route)
        assert some.cost >= found.cost
    elif isinstance(some, Walled):
        assert isinstance(found, Walled)


def agree_on_answer(domain: Domain, asked: Question) -> None:
    """The planner's answer is the plain model's, and the pass over a fleet tells its first part."""
    start = domain.start(asked.observed, asked.remembered)
    answer = plan(domain, start, asked.desired)
    hold_to_model(asked, answer)
    (number,) = Columns(domain, [start]).next_parts(asked.desired).tolist()
    assert told(domain, number) == begins(answer)


def other_tables(one: Case) -> Iterator[NextMoves]:
    """Those that the parts of the goal do not have by themselves, as far as there can be any."""
    parts = factors_of(one.domain, one.question.desired, one.memory).parts
    if len(parts) > 1 or parts[0].tables.ahead is None:
        yield NextMoves(one.scope, STATES_MAX, ahead=solve(one.scope, STATES_MAX))
    if len(parts) > 1 or parts[0].tables.ahead is not None:
        yield NextMoves(one.scope, STATES_MAX, stages=stages_of(one.scope, STATES_MAX))
