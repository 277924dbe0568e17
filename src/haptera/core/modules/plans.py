"""The plans of classes that were searched for here, kept because a fleet is in few states."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from haptera.core.state.allowance import TurnAllowance
from haptera.model.chain import Chain, NoChain
from haptera.planner.domain.bars import Bars, barring
from haptera.planner.domain.domain import Domain
from haptera.planner.explain.explain import PlanQuestion, aside
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

Goal = tuple[tuple[str, str], ...]
# A class, a start, a goal, and what has failed.
Question = tuple[Domain, int, Goal, Bars]


class KnownPlans:
    """`work_max` is what the answer to one question may cost here."""

    def __init__(self, work_max: int) -> None:
        self._work_max = work_max
        self._ready: dict[tuple[Domain, Goal], None] = {}
        self._plans: dict[Question, Chain | NoChain] = {}
        self._asides: dict[Question, str] = {}

    def keep(self, domains: Collection[Domain]) -> None:
        """Let go of all that is of other classes."""
        self._plans = {key: one for key, one in self._plans.items() if key[0] in domains}
        self._asides = {key: one for key, one in self._asides.items() if key[0] in domains}
        self._ready = {}

    def plan(
        self,
        domain: Domain,
        start: int,
        goal: Mapping[str, str],
        barred: Bars,
        allowance: TurnAllowance,
    ) -> Chain | NoChain | None:
        """The chain from here, or the reason why there is none; kept, for others are alike.

        Past what is affordable here the reason is `budget`: a worker may find more. None where
        enough was planned in this turn: it is to be asked again in the next one.
        """
        key = (domain, start, tuple(sorted(goal.items())), barred)
        found = self._plans.get(key)
        if found is None:
            found = self._search(domain, start, goal, barred, allowance)
            if found is not None:
                _make_room(self._plans, PLANS_CACHED_MAX)
                self._plans[key] = found
        return found

    def aside(
        self,
        domain: Domain,
        start: int,
        goal: Mapping[str, str],
        barred: Bars,
        allowance: TurnAllowance,
    ) -> str | None:
        """What keeps a cheaper chain than the plan from being taken, if it is found in time.

        Empty where nothing does; None where it is to be asked again in the next turn.
        """
        key = (domain, start, tuple(sorted(goal.items())), barred)
        found = self._asides.get(key)
        if found is None and allowance.has_time:
            budget = affordable(self._work_max)
            found = aside(PlanQuestion(domain, start, goal, budget, barred)) or ""
            allowance.spend(self._work_max - budget.work)
            _make_room(self._asides, ASIDES_CACHED_MAX)
            self._asides[key] = found
        return found

    def _search(
        self,
        domain: Domain,
        start: int,
        goal: Mapping[str, str],
        barred: Bars,
        allowance: TurnAllowance,
    ) -> Chain | NoChain | None:
        if self._work_max == 0 and not domain.meets(start, goal):
            return NoChain(gave_up(0), 0)
        self._make_ready(barring(domain, barred.steps), goal, allowance)
        if not allowance.has_time:
            return None
        budget = affordable(self._work_max)
        found = plan(domain, start, goal, budget, barred=barred)
        allowance.spend(ANSWERING * len(domain.fields) + self._work_max - budget.work)
        if isinstance(found, NoChain) and budget.is_spent:
            return NoChain(gave_up(found.expanded), found.expanded)  # Or the words are not all.
        return found

    def _make_ready(
        self, domain: Domain, goal: Mapping[str, str], allowance: TurnAllowance
    ) -> None:
        """Work out what all searches for a goal need, unless there is no time left for it."""
        key = domain, tuple(sorted(goal.items()))
        if key not in self._ready and allowance.has_time:
            _make_room(self._ready, FACTORS_CACHED_MAX)
            self._ready[key] = None
            make_ready(domain, goal)
            size = len(domain.moves) * len(domain.fields)
            allowance.spend(READYING + READYING_EACH * size)


def _make_room(kept: dict[Any, Any], count_max: int) -> None:
    """Let go of what was kept first."""
    while len(kept) >= count_max:
        del kept[next(iter(kept))]
