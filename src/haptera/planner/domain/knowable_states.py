"""The knowable states of a class: those that strip leaves as they are.

Such a state is a word in which each variable has its known bit, or else all bits of the ways in
which it can stand unknown or remembered: what can be known does not depend on these. A variable
that is left out has no bit, so that nothing forbidden of it stands in the way.
"""

from collections.abc import Iterator

from haptera.planner.domain.bitstate import Field, Operator, Support, is_grounded
from haptera.planner.domain.domain import Domain


def not_known(field: Field) -> int:
    """All ways in which a variable can stand without being known."""
    return field.remembered | field.unknown


def around(domain: Domain, group: int) -> int:
    """The bits of a group of variables, and of all that its moves and what it knows rest on."""
    within = group
    for move in domain.moves:
        if move.touches & group:
            within |= move.reads
    for one in reversed(domain.grounds):
        if one.known & within:
            within |= one.reads
    return sum(field.whole for field in domain.fields.values() if field.whole & within)


def knowable_states(domain: Domain, within: int, states_max: int) -> list[int] | None:
    """All states of the variables within, or None where there are more than so many.

    What these rest on is within too, or left out.
    """
    states = [0]
    for field, grounds in _rising(domain):
        if field.whole & within:
            states = [state | bits for state in states for bits in _ways(field, grounds, state)]
            if len(states) > states_max:
                return None
    return states


def may(domain: Domain, state: int, move: Operator, within: int) -> bool:
    """Whether a move may be taken where this is known, and what is not known stands in some way."""
    left = state & ~move.forbidden
    read = move.reads & within
    fields = domain.fields.values()
    return all(left & field.whole for field in fields if field.whole & read)


def after(domain: Domain, state: int, move: Operator, within: int) -> int:
    """What is known after a move."""
    state = (state & move.keep | move.put) & within
    for field in domain.fields.values():
        if field.whole & move.touches & within and not state & field.known:
            state |= not_known(field)
    for one in move.upsets:
        held = state & one.known & within
        if held and not is_grounded(state, one, held):
            state = state ^ held | not_known(domain.fields[one.variable])
    return state


def _rising(domain: Domain) -> Iterator[tuple[Field, Support | None]]:
    """Each variable after all that knowing it rests on."""
    looked_at = {one.variable for one in domain.grounds}
    for name, field in domain.fields.items():
        if name not in looked_at:
            yield field, None
    for one in domain.grounds:
        yield domain.fields[one.variable], one


def _ways(field: Field, grounds: Support | None, state: int) -> Iterator[int]:
    """How the variable can stand beside what rests below it."""
    yield not_known(field)
    for value in field.values[1:]:
        bit = field.holding((value,))
        if grounds is None or is_grounded(state, grounds, bit):
            yield bit
