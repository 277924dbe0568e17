"""Plan queries: a question to the planner as data for a worker, and its answer understood."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from haptera.model.chain import Chain, NoChain, ToldChain
from haptera.model.effects import FailedStep, SearchPlan
from haptera.model.events import PlanFound
from haptera.planner.domain.bars import Bars
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.problem import Problem
from haptera.planner.domain.replay import link_name, replay
from haptera.planner.domain.task import Memory
from haptera.planner.planner import chain_of, plan
from haptera.planner.search.factors import factors_of
from haptera.planner.search.search_budget import SearchBudget

# Where nothing waits: states that one search goes on from, and moves that it tries in them. What
# is kept of a state takes some 500 bytes, and no move leads to more than one.
EXPANSIONS_APART_MAX: Final = 100_000
TRIES_APART_MAX: Final = 10_000_000

# In order of names, so that two alike are the same.
Goal = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PlanQuery:
    """A start and a goal of one class, and what was tried in vain.

    Two are the same only with the same compiled class: what is found with some parts is never
    taken for an answer with others.
    """

    domain: Domain
    start: int
    goal: Goal
    barred: Bars


def query_of(domain: Domain, start: int, goal: Mapping[str, str], barred: Bars) -> PlanQuery:
    return PlanQuery(domain, start, tuple(sorted(goal.items())), barred)


def search_for(one: PlanQuery, number: int, deadline_at: int) -> SearchPlan:
    """The question as it leaves the core, whose classes no other side knows."""
    problem = one.domain.problem
    return SearchPlan(
        number,
        dict(problem.variables),
        dict(problem.attributes),
        problem.looks,
        problem.steps,
        one.domain.known(one.start),
        one.domain.remembered(one.start),
        dict(one.goal),
        tuple(sorted(one.barred.looks)),
        tuple(_failed(one.domain, *failed) for failed in sorted(one.barred.steps)),
        unhurried(one.domain),
        deadline_at,
    )


def unhurried(domain: Domain) -> int:
    """How many states a search may go on from where nothing waits for it."""
    return min(EXPANSIONS_APART_MAX, TRIES_APART_MAX // max(1, len(domain.moves)))


def answer(asked: SearchPlan) -> PlanFound:
    """What a worker does: the same planner, with more time."""
    problem = Problem(asked.variables, asked.attributes, asked.looks, asked.steps)
    domain = compile_class(problem)
    failed = [(one.path, domain.start(one.observed, one.remembered)) for one in asked.failed]
    found = plan(
        domain,
        domain.start(asked.observed, asked.remembered),
        asked.goal,
        SearchBudget(asked.states_max),
        barred=Bars(frozenset(asked.barred), frozenset(failed)),
    )
    return PlanFound(asked.id, found if isinstance(found, NoChain) else _told(found))


def understood(one: PlanQuery, told: ToldChain | NoChain) -> Chain | NoChain | None:
    """The answer in the parts of the class itself; None where it does not answer this question.

    Each part is taken as the planner would take it, so that what cannot be is found out here. On
    so that no part of the way has to be sought again.
    """
    if isinstance(told, NoChain):
        return told
    domain = one.domain
    root = one.start | domain.touched
    if told.doubts:
        root &= ~domain.memories(one.start)
    trail = replay(domain, root, told.links, one.barred)
    if trail is None or not _is_answer(one, trail.states[-1]):
        return None
    if told.optimal and not one.barred:
        memory = Memory.DOUBTED if told.doubts else Memory.TRUSTED
        factors_of(domain, dict(one.goal), memory).keep(root, trail.moves)
    return chain_of(domain, root, trail.moves, told.expanded, optimal=told.optimal)


def _is_answer(one: PlanQuery, end: int) -> bool:
    """True if the goal is met; with bars, if more of it is met than at the start."""
    goal = set(one.goal)
    if not one.barred:
        return one.domain.meets(end, dict(goal))
    return goal & one.domain.known(end).items() > goal & one.domain.known(one.start).items()


def _failed(domain: Domain, path: str, state: int) -> FailedStep:
    return FailedStep(path, domain.known(state), domain.remembered(state))


def _told(chain: Chain) -> ToldChain:
    links = tuple(map(link_name, chain.links))
    return ToldChain(links, chain.optimal, chain.doubts, chain.expanded)
