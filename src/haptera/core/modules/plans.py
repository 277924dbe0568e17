"""The plans of classes that were searched for here, kept because a fleet is in few states."""

from collections.abc import Collection
from typing import Final, TypeVar

from haptera.core.state.allowance import TurnAllowance
from haptera.model.chain import Chain, NoChain
from haptera.planner.domain.bars import barring
from haptera.planner.domain.domain import Domain
from haptera.planner.explain.explain import PlanQuestion, aside
from haptera.planner.plan_query import Goal, PlanQuery
from haptera.planner.planner import make_ready, plan
from haptera.planner.reasons.reason import gave_up
from haptera.planner.search.factors import FACTORS_CACHED_MAX
from haptera.planner.search.search_budget import affordable

# Plans kept: one a (class, start, goal); a fleet in a few states needs few.
PLANS_CACHED_MAX: Final = 4096
# Of so many of these it is kept what keeps a cheaper chain from being taken.
ASIDES_CACHED_MAX: Final = 256
# Work, in moves tried: making ready for a goal, and that for each move and variable, telling an
# answer for each variable.
READYING: Final = 10_000
READYING_EACH: Final = 6
ANSWERING: Final = 250

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class KnownPlans:
    """`work_max` is what the answer to one question may cost here."""

    def __init__(self, work_max: int) -> None:
        self._work_max = work_max
        self._ready: dict[tuple[Domain, Goal], None] = {}
        self._plans: dict[PlanQuery, Chain | NoChain] = {}
        self._asides: dict[PlanQuery, str] = {}

    def keep(self, domains: Collection[Domain]) -> None:
        """Let go of all that is of other classes."""
        self._plans = {key: one for key, one in self._plans.items() if key.domain in domains}
        self._asides = {key: one for key, one in self._asides.items() if key.domain in domains}
        self._ready = {}

    def plan(self, query: PlanQuery, allowance: TurnAllowance) -> Chain | NoChain | None:
        """The chain from here, or the reason why there is none; kept, for others are alike.

        Past what is affordable here the reason is `budget`: a worker may find more. None where
        enough was planned in this turn: it is to be asked again in the next one.
        """
        found = self._plans.get(query)
        if found is None:
            found = self._search(query, allowance)
            if found is not None:
                _keep(self._plans, query, found, PLANS_CACHED_MAX)
        return found

    def aside(self, query: PlanQuery, allowance: TurnAllowance) -> str | None:
        """The obstacle to a chain cheaper than the plan, in words, if it is found in time.

        Empty where there is none; None where it is to be asked again in the next turn.
        """
        found = self._asides.get(query)
        if found is None and allowance.has_time:
            budget, goal = affordable(self._work_max), dict(query.goal)
            asked = PlanQuestion(query.domain, query.start, goal, budget, query.barred)
            found = aside(asked) or ""
            allowance.spend(self._work_max - budget.work)
            _keep(self._asides, query, found, ASIDES_CACHED_MAX)
        return found

    def _search(self, query: PlanQuery, allowance: TurnAllowance) -> Chain | NoChain | None:
        domain, start, goal, barred = query.domain, query.start, dict(query.goal), query.barred
        if self._work_max == 0 and not domain.meets(start, goal):
            return NoChain(gave_up(0), 0)
        self._make_ready(barring(domain, barred.steps), query.goal, allowance)
        if not allowance.has_time:
            return None
        budget = affordable(self._work_max)
        found = plan(domain, start, goal, budget, barred=barred)
        allowance.spend(ANSWERING * len(domain.fields) + self._work_max - budget.work)
        if isinstance(found, NoChain) and budget.is_spent:
            return NoChain(gave_up(found.expanded), found.expanded)  # Or the words are not all.
        return found

    def _make_ready(self, domain: Domain, goal: Goal, allowance: TurnAllowance) -> None:
        """Work out what all searches for a goal need, unless there is no time left for it."""
        if (domain, goal) not in self._ready and allowance.has_time:
            _keep(self._ready, (domain, goal), None, FACTORS_CACHED_MAX)
            make_ready(domain, dict(goal))
            size = len(domain.moves) * len(domain.fields)
            allowance.spend(READYING + READYING_EACH * size)


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value, count_max: int) -> None:
    """Keep this, and so many in all at the most: the first that was kept goes first."""
    while len(kept) >= count_max:
        del kept[next(iter(kept))]
    kept[key] = value
