"""Which condition stands in the way of a goal, once every state within reach is known."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from haptera.core.knowledge import Domain, excluded, unmet, unsourced
from haptera.core.word import Move
from haptera.model.chain import Reason, ReasonKind
from haptera.model.parts import ANY, Look

States = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hurdle:
    """A condition of a part: it fails in states that have a `forbidden` bit set.

    `wants` are values of the variable that would do; none where an exclude is in the way.
    """

    variable: str
    forbidden: int
    text: str
    wants: tuple[str, ...] = ()

    def shut(self, reached: States) -> bool:
        """Whether it fails in all of these."""
        return all(state & self.forbidden for state in reached)


def blocked(domain: Domain, goal: Mapping[str, str], reached: States) -> Reason:
    """The condition at the bottom: of a part that leads to the goal, or to what one needs."""
    missing = [name for name in sorted(goal) if not _seen(domain, reached, name, goal[name])]
    if not missing:
        values = " and ".join(f"{name}={goal[name]}" for name in sorted(goal))
        text = f"{values} are each within reach, but not all at once"
        return Reason(ReasonKind.BLOCKED, min(goal), text)
    name = missing[0]
    variable, text = _bottom(domain, reached, name, (goal[name],))
    return Reason(ReasonKind.BLOCKED, variable, f"no way to {name}={goal[name]}: {text}")


def _bottom(
    domain: Domain, reached: States, variable: str, values: tuple[str, ...]
) -> tuple[str, str]:
    """Go down from condition to condition for as long as parts lead to what it wants."""
    visited: set[str] = set()
    text = f"nothing leads to {variable}"
    moves = _leading(domain, variable, values)
    while moves and variable not in visited:
        visited.add(variable)
        tries = [(_shut(domain, reached, move), move.part.path) for move in moves]
        shut, path = min(tries, key=lambda one: (len(one[0]), one[1]))
        if not shut:
            return variable, f"{path} never finds all that it needs at once"
        variable, values, text = shut[0].variable, shut[0].wants, shut[0].text
        moves = _leading(domain, variable, values)
    return variable, text


def _leading(domain: Domain, variable: str, values: Iterable[str]) -> list[Move]:
    bits = domain.fields[variable].holding(values)
    return [move for move in domain.moves if move.put & bits]


def _shut(domain: Domain, reached: States, move: Move) -> list[Hurdle]:
    return [one for one in _hurdles(domain, move) if one.shut(reached)]


def _hurdles(domain: Domain, move: Move) -> Iterator[Hurdle]:
    part, fields = move.part, domain.fields
    for one in part.requires:
        text = f"{part.path} requires {_named(one.name, one.values)}"
        yield Hurdle(one.name, unmet(one, fields), text, one.values)
    for one in part.excludes:
        text = f"{part.path} is excluded by {_named(one.name, one.values)}"
        yield Hurdle(one.name, excluded(one, fields), text)
    if isinstance(part, Look):
        own = move.forbidden & fields[part.at].whole
        yield Hurdle(part.at, own, f"{part.path} expects the {part.at} known or remembered")
        return
    for change in part.changes:
        others = tuple(one for one in fields[change.variable].values if one != change.target)
        sources = others if change.sources == (ANY,) else change.sources
        text = f"{part.path} starts from {_named(change.variable, sources)}"
        yield Hurdle(change.variable, unsourced(change, fields), text, sources)


def _named(name: str, values: Iterable[str]) -> str:
    return f"{name}={' or '.join(values)}"


def _seen(domain: Domain, reached: States, name: str, value: str) -> bool:
    bit = domain.fields[name].holding((value,))
    return any(state & bit for state in reached)
