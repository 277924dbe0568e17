"""Contingent outcomes: all steps that may run, over every world that looks may find.

A world is how all that is not known may be. In it a look finds what is so, and a step does what it
declares; after each part the chain is planned anew, as it will be when it runs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from haptera.model.chain import Chain, Do, Find, Link, NoChain, gives_up
from haptera.model.parts import Look, Step
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.problem import subjects

# States that are followed of one start: past it is said that more may come.
FOLLOWED_MAX: Final = 256

# What is planned from a state; None: it is not known yet.
Planned = Callable[[int], Chain | NoChain | None]
# A state, and the variables that are settled in it, for they are known, or were.
_Place = tuple[int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The steps that are taken in some world, by path, and whether there is one with no way on.

    `looked` are the variables that a look may find to be otherwise than a chain expects. Without
    `whole` more may come than was followed.
    """

    steps: tuple[Step, ...]
    looked: tuple[str, ...]
    stuck: bool
    whole: bool


def outcomes(domain: Domain, start: int, planned: Planned) -> Outcomes | None:
    """All that may come from a stripped start; None where some of it is not planned yet."""
    steps: dict[str, Step] = {}
    looked: dict[str, None] = {}
    stuck, whole = False, True
    places: dict[_Place, None] = {(start, frozenset(domain.known(start))): None}
    pending = [*places]
    while pending:
        state, settled = place = pending.pop()
        answer = planned(state)
        if answer is None:
            return None
        if isinstance(answer, NoChain):
            stuck, whole = stuck or not gives_up(answer), whole and not gives_up(answer)
            continue
        for link in answer.links[:1]:
            if isinstance(link, Do):
                steps[link.step.path] = link.step
            elif link.look.at not in settled:
                looked[link.look.at] = None
            news = [one for one in _next(domain, place, link) if one not in places]
            if len(places) + len(news) > FOLLOWED_MAX:
                whole = False
                continue
            places |= dict.fromkeys(news)
            pending += news
    taken = tuple(steps[path] for path in sorted(steps))
    return Outcomes(taken, tuple(sorted(looked)), stuck, whole)


def _next(domain: Domain, place: _Place, link: Link) -> Iterator[_Place]:
    """Where a link leads, in each world that is left."""
    state, settled = place
    after = settled | set(subjects(link.part))
    match link:
        case Find(look):
            field = domain.fields[look.at]
            for value in _answers(domain, look, field.memory(state), settled):
                yield state & ~field.whole | field.holding((value,)), after
        case Do(step):
            (move,) = (one for one in domain.moves if one.part is step)
            yield domain.strip((state & move.keep | move.put) & ~domain.touched), after


def _answers(
    domain: Domain, look: Look, held: str | None, settled: frozenset[str]
) -> Iterable[str]:
    """What a look may find; what is settled is so still, unless no look could say it."""
    rivals = (one for one in domain.looks if one.at == look.at)
    if look.at not in settled or not any(held in one.outcomes for one in rivals):
        return look.outcomes
    return (value for value in look.outcomes if value == held)
