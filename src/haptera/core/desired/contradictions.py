"""Contradictions: desired values that can never hold together with those desired already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from haptera.core.modules.catalog import Catalog
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.model.changes import Change, Declare, SetDesired, Undeclare, UnsetDesired
from haptera.model.entity import EntityId
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.pieces import Pieces, slices
from haptera.planner.reasons.unknowable import unknowable
from haptera.planner.search.search_budget import affordable

# What a question about a goal may cost, in moves tried: some 1 ms. What that leaves open is let
# through.
QUESTION_WORK_MAX: Final = 10_000
# Work, in moves tried: going by an entity, and looking at a goal that was not looked at before.
PASSING: Final = 20
LOOKING: Final = 2_000
# So many changes of a write are gathered in a piece.
GATHERED_AT_ONCE: Final = 50
# Whose word is not held against others': a file says what should be, whatever people try.
SITE: Final = "site"

Values = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Wish:
    """What one write would have of an entity; `owner` is who sets values."""

    owner: str = SITE
    sets: dict[str, str] = field(default_factory=dict)
    drops: set[str] = field(default_factory=set)


class Contradictions:
    """Finds for each entity of a write which standing values rule out those that it sets."""

    def __init__(self, table: EntityTable, catalog: Catalog) -> None:
        self._table = table
        self._catalog = catalog

    def checking(self, changes: Sequence[Change]) -> Pieces[str | None]:
        """The first contradiction, in words, with the write that would do both."""
        seen: dict[tuple[Domain, Values, Values], str | None] = {}
        wishes, new = yield from _wishes(changes)
        for entity, wish in wishes.items():
            yield PASSING
            row = self._table.get(entity)
            # Of one that is declared by the write, nothing stands that could contradict.
            if row is None or wish.owner == SITE or entity in new:
                continue
            standing = self._standing(row, wish)
            sets = {name: value for name, value in wish.sets.items() if _is_brought(row, name)}
            if not standing or not sets:
                continue
            domain = yield from self._catalog.compiling(row, self._table.node_of(row))
            key = domain, tuple(sorted(standing.items())), tuple(sorted(sets.items()))
            if key not in seen:
                yield LOOKING
                seen[key] = _clash(domain, standing, sets)
            if (text := seen[key]) is not None:
                return _told(row, Wish(wish.owner, sets, wish.drops), domain, standing, text)
        return None

    def _standing(self, row: EntityState, wish: Wish) -> dict[str, str]:
        """The values of its mutation variables that are desired, and that the write leaves."""
        return {
            name: str(one.value)
            for name, one in row.desired.values.items()
            if _is_brought(row, name) and name not in wish.sets and name not in wish.drops
        }


def _is_brought(row: EntityState, name: str) -> bool:
    """True if parts bring about what is desired of this; what is heeded rules nothing out."""
    variable = row.kind.variable(name)
    return variable is not None and not variable.heeded


def _wishes(changes: Sequence[Change]) -> Pieces[tuple[dict[EntityId, Wish], set[EntityId]]]:
    """What is wished, by entity, and which entities the write declares or takes away."""
    wishes: dict[EntityId, Wish] = {}
    new: set[EntityId] = set()
    for some in slices(changes, GATHERED_AT_ONCE):
        for change in some:
            match change:
                case Declare(entity) | Undeclare(entity):
                    new.add(entity)
                case SetDesired(entity, name, value, owner):
                    wish = wishes.setdefault(entity, Wish())
                    wish.sets[name], wish.owner = str(value), owner
                case UnsetDesired(entity, name):
                    wishes.setdefault(entity, Wish()).drops.add(name)
                case _:
                    pass
        yield PASSING * len(some)
    return wishes, new


def _clash(domain: Domain, standing: Mapping[str, str], sets: Mapping[str, str]) -> str | None:
    """Why these cannot be known together, though each of the two sides could be alone."""
    sets = {name: value for name, value in sets.items() if name in domain.fields}
    if not sets or _never(domain, standing) or _never(domain, sets):
        return None
    return _never(domain, {**standing, **sets})


def _never(domain: Domain, goal: Mapping[str, str]) -> str | None:
    """Why the values can never be known at once."""
    found = unknowable(domain, goal, affordable(QUESTION_WORK_MAX))
    return None if found is None else found.text


def _told(
    row: EntityState, wish: Wish, domain: Domain, standing: Mapping[str, str], text: str
) -> str:
    """With whose the values are that stand in the way, and the form that desires them no more."""
    against = [
        name
        for name in sorted(standing)
        if _clash(domain, {name: standing[name]}, wish.sets) is not None
    ] or sorted(standing)
    owners = ", ".join(
        f"{name}={standing[name]} is desired by {row.desired.values[name].owner}"
        for name in against
    )
    sets = " ".join(f"{name}={value}" for name, value in sorted(wish.sets.items()))
    drops = " ".join(f"--unset {name}" for name in against)
    return f"{row.id}: {text}; {owners}: haptera set {row.id} {sets} {drops} --take"
