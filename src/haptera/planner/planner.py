"""The chain from what is to what should be, or why there is none (semantics.md, Chain)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from haptera.model.chain import Chain, Do, Find, Link, NoChain
from haptera.planner.domain.bars import NO_BARS, Bars, barring
from haptera.planner.domain.bitstate import Operator, strip
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.task import Memory
from haptera.planner.reasons.reason import gave_up, no_progress, reason
from haptera.planner.search.a_star import OutOfBudget, SearchResult, Unsolvable
from haptera.planner.search.factors import Factors, factors_of
from haptera.planner.search.search_budget import EXPANSIONS_MAX, SearchBudget
from haptera.planner.search.serial_subgoals import End


def plan(
    domain: Domain,
    start: int,
    goal: Mapping[str, str],
    budget: SearchBudget | None = None,
    *,
    barred: Bars = NO_BARS,
) -> Chain | NoChain:
    """The cheapest chain from a stripped state to the goal, which is all known values.

    What is `barred` was tried in vain. Where the goal is out of reach without it, the chain leads
    to as much of the goal as is within reach: the rest waits, and what is met is not given up.
    All that is looked for spends one `budget`: once it is spent, a chain is looked for that need
    not be the cheapest, as far as there are outlooks; and a reason is given as far as it was found.
    """
    budget = SearchBudget() if budget is None else budget
    found, expanded = _search(domain, start, goal, budget, barred)
    if found is not None:
        return found
    if barred:
        freely = plan(domain, start, goal, budget)
        if isinstance(freely, NoChain):
            return freely
        part = _rest(domain, start, goal, budget, barred)
        return part or NoChain(no_progress(freely, barred), expanded)
    trusted = factors_of(domain, goal, Memory.TRUSTED)
    return NoChain(reason(domain, start, goal, trusted, budget), expanded)


def make_ready(domain: Domain, goal: Mapping[str, str]) -> None:
    """Work out what all searches for a goal need, which the first one would do else."""
    factors_of(domain, goal, Memory.TRUSTED).make_ready()


def next_part(
    domain: Domain, start: int, goal: Mapping[str, str], *, expansions_max: int = EXPANSIONS_MAX
) -> Operator | End:
    """What the chain from here begins with, and nothing else of it.

    WALLED where there is none, UNKNOWN where `expansions_max` states does not tell.
    """
    budget = SearchBudget(expansions_max)
    for root, factors in _roots(domain, start, goal):
        found = factors.next(root, budget)
        if found is not End.WALLED:
            return found
    return End.WALLED


def _search(
    domain: Domain, start: int, goal: Mapping[str, str], budget: SearchBudget, barred: Bars
) -> tuple[Chain | NoChain | None, int]:
    """The chain, or that the budget does not tell; None where there is none. And what it took."""
    domain, expanded = barring(domain, barred.steps), 0
    for root, factors in _roots(domain, start, goal):
        found = factors.search(root, budget, barred=barred.looks)
        expanded += found.expanded
        if not isinstance(found, Unsolvable):
            return _answer(domain, root, found, expanded), expanded
    return None, expanded


def _rest(
    domain: Domain, start: int, goal: Mapping[str, str], budget: SearchBudget, barred: Bars
) -> Chain | None:
    """The chain to what is met of the goal, and as much more of it as can be had with that."""
    known, chain = domain.known(start), None
    kept = {name: value for name, value in goal.items() if known.get(name) == value}
    for name in sorted(goal.keys() - kept.keys()):
        more = {**kept, name: goal[name]}
        found, _ = _search(domain, start, more, budget, barred)
        if isinstance(found, Chain):
            kept, chain = more, found
    return chain


def _roots(domain: Domain, start: int, goal: Mapping[str, str]) -> Iterator[tuple[int, Factors]]:
    """Where searches begin: first memory is trusted, then, if that led nowhere, less so.

    For a machine may have been swapped (semantics.md, Doubt).
    """
    trusting = start | domain.touched
    yield trusting, factors_of(domain, goal, Memory.TRUSTED)
    doubting = trusting & ~domain.memories(start)
    doubtful = factors_of(domain, goal, Memory.DOUBTED)
    if (trusting ^ doubting) & doubtful.whole.within:
        yield doubting, doubtful


def chain_of(
    domain: Domain, root: int, moves: Sequence[Operator], expanded: int, *, optimal: bool
) -> Chain:
    """The chain that these moves make from a root, where each can be made in its turn."""
    state, cost = root, 0
    links: list[Link] = []
    states = [domain.known(state)]
    for move in moves:
        links.append(_link(domain, state, move))
        before, state = state, strip(state & move.keep | move.put, move.upsets)
        states.append(_known(domain, states[-1], before ^ state, state))
        cost += move.part.cost
    doubts = root & domain.touched != domain.touched
    return Chain(
        tuple(links), tuple(states), cost, optimal=optimal, doubts=doubts, expanded=expanded
    )


def _answer(
    domain: Domain, root: int, found: SearchResult | OutOfBudget, expanded: int
) -> Chain | NoChain:
    if isinstance(found, OutOfBudget):
        return NoChain(gave_up(expanded), expanded)
    return chain_of(domain, root, found.moves, expanded, optimal=found.optimal)


def _known(domain: Domain, last: dict[str, str], changed: int, state: int) -> dict[str, str]:
    """What is known, where it differs from the last state only by the changed bits."""
    known = dict(last)
    for name, field in domain.fields.items():
        if changed & field.whole:
            value = field.value(state)
            known.pop(name, None)
            known |= {} if value is None else {name: value}
    return known


def _link(domain: Domain, state: int, move: Operator) -> Link:
    """The link of a move; a look hopes where it could expect anything but what is remembered."""
    if isinstance(move.link, Do):
        return move.link
    look = move.link.look
    could = {
        one.link.expect
        for one in domain.by_look[look.path]
        if isinstance(one.link, Find) and not state & one.forbidden
    }
    memory = domain.fields[look.at].memory(state)
    return replace(move.link, hoped=could != {memory})
