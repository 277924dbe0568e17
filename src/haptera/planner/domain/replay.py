"""A chain replayed from its links: the moves of its class, and the states between."""

from collections.abc import Sequence
from dataclasses import dataclass

from haptera.model.chain import Find, Link
from haptera.planner.domain.bars import NO_BARS, Bars, barring
from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.domain import Domain

# A link as it travels between processes: its part's path, and what a look expects.
Name = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Trail:
    """The moves, and the states before each of them and after the last."""

    moves: tuple[Operator, ...]
    states: tuple[int, ...]


def replay(
    domain: Domain, root: int, links: Sequence[Name], barred: Bars = NO_BARS
) -> Trail | None:
    """Take each link as the planner would; None where one cannot be taken, or is barred."""
    if any(path in barred.looks for path, _ in links[:1]):
        return None
    by_name: dict[Name, list[Operator]] = {}
    left = barring(domain, barred.steps).moves
    for move in (*left, *domain.doubts):  # In doubt, a look can go one way more.
        by_name.setdefault(link_name(move.link), []).append(move)
    moves, states = list[Operator](), [root]
    for name in links:
        state = states[-1]
        open_moves = [one for one in by_name.get(name, ()) if not state & one.forbidden]
        if not open_moves:
            return None
        moves.append(open_moves[0])
        states.append(domain.strip(state & moves[-1].keep | moves[-1].put))
    return Trail(tuple(moves), tuple(states))


def link_name(link: Link) -> Name:
    return link.part.path, link.expect if isinstance(link, Find) else None
