"""A witness is found wherever a look at all states finds one, and is what was asked for."""

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.parts import Look
from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.witness import TooLargeError, Witnesses
from tests.lint import lint_strategies
from tests.planner import shapes
from tests.planner.planner_model import Model

pytestmark = pytest.mark.timeout(360)


def all_states(domain: Domain) -> Iterator[int]:
    """Every state that the plain model's strip leaves alone, as a word."""
    model = Model(domain.problem)
    variables = domain.problem.variables
    statuses = [(*values, *(f"{one}?" for one in values[1:])) for values in variables.values()]
    for chosen in product(*statuses):
        state = dict(zip(variables, chosen, strict=True))
        if model.strip(state) == state:
            known = {name: one for name, one in state.items() if model.is_known(name, one)}
            remembered = {name: one[:-1] for name, one in state.items() if one.endswith("?")}
            yield domain.start(known, remembered)


def led(domain: Domain, state: int, move: Operator | None) -> int:
    if move is None:
        return state
    return domain.strip(state & move.keep | move.put) & ~domain.touched


def fits(domain: Domain, state: int, bits: int) -> bool:
    return all(state & field.whole & bits for field in domain.fields.values())


@given(st.integers(0, 2**64))
def test_there_is_a_witness_where_there_is_one_among_all_states(seed: int) -> None:
    random = Random(seed)
    domain = compile_class(lint_strategies.problem(random))
    states = list(all_states(domain))
    found = Witnesses(domain, 1_000)
    for move in (None, *domain.moves):
        # Half of all bits, or most of them, so that there often is a witness and often is none.
        before, after = (random.getrandbits(200) | random.getrandbits(200) for _ in "12")
        open_ = before if move is None else before & ~move.forbidden
        wanted = after if move is not None else -1
        fitting = [
            state
            for state in states
            if fits(domain, state, open_) and fits(domain, led(domain, state, move), wanted)
        ]
        witness = found.find(before, move, wanted)
        assert (witness is not None) == bool(fitting)
        if witness is not None:
            assert witness.before in fitting
            assert witness.after == led(domain, witness.before, move)


def test_a_witness_has_no_more_known_than_is_needed() -> None:
    domain = compile_class(shapes.problem(shapes.services(4, 36)))
    (start,) = (move for move in domain.moves if move.part.name == "start_s0")
    witness = Witnesses(domain, 1_000).find(-1, start)
    assert witness is not None
    on = dict.fromkeys(["c0", "c1", "c2", "c3"], "on")
    assert domain.known(witness.before) == on | {"s0": "off"}
    assert domain.known(witness.after) == on | {"s0": "on"}


def test_what_takes_too_many_choices_is_not_answered() -> None:
    # Each pigeon is known while some hole holds it; there is one hole too few.
    pigeons, holes = "123456789", "abcdefgh"
    parts: shapes.Parts = [Look("m", f"look_{hole}", "k", hole, tuple(pigeons)) for hole in holes]
    for one, hole in product(pigeons, holes):
        requires = shapes.conditions({hole: one})
        parts.append(Look("m", f"see_{one}_{hole}", "k", f"p{one}", ("here",), requires))
    domain = compile_class(shapes.problem(parts))
    here = {f"p{one}": "here" for one in pigeons}
    with pytest.raises(TooLargeError):
        Witnesses(domain, 1_000).find(known(domain, here))
    for one in pigeons[4:]:
        del here[f"p{one}"]
    witness = Witnesses(domain, 1_000).find(known(domain, here))
    assert witness is not None
    assert domain.meets(witness.before, here)


def known(domain: Domain, values: dict[str, str]) -> int:
    """All bits, but of these variables only those of the values."""
    return domain.wanted(values) | ~sum(domain.fields[name].whole for name in values)
