"""How long parts usually take: a robust figure, of what happened lately."""

from hypothesis import given
from hypothesis import strategies as st

from haptera.core.state.limits import S
from haptera.core.state.typical_durations import LAST_MAX, NODES_MAX, NOTABLE_NS, Usual, is_notable
from haptera.core.views.query import view
from haptera.model.answers.views import DoingView
from haptera.model.effects import Call
from haptera.model.events import Answered, Ended, Ready, Ticked, Written
from tests.core.scenario import parent, row_of, stored, told


def test_nothing_is_usual_of_what_was_never_done() -> None:
    assert Usual().of("bmc.switch_on") is None


def test_one_that_took_for_ever_does_not_make_that_usual() -> None:
    usual = Usual()
    for took in (3, 2, 900, 3, 4):
        usual.took("bmc.switch_on", took * S)

    assert usual.of("bmc.switch_on") == 3 * S


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_half_of_the_last_took_no_longer_and_half_no_less(took: list[int]) -> None:
    usual = Usual()
    for one in took:
        usual.took("a.part", one)
    last = took[-LAST_MAX:]
    found = usual.of("a.part")

    assert found is not None
    assert 2 * sum(one <= found for one in last) >= len(last)
    assert 2 * sum(one >= found for one in last) >= len(last)


def test_of_what_runs_elsewhere_the_last_nodes_that_told_count_each_once() -> None:
    usual = Usual()
    for number in range(1, 4):
        usual.reported("service.start", f"n{number}", number * S)
    usual.reported("service.start", "n1", 9 * S)
    assert (usual.of("service.start"), dict(usual)) == (3 * S, {"service.start": 3 * S})
    for number in range(NODES_MAX):
        usual.reported("service.start", f"m{number}", 7 * S)
    assert usual.of("service.start") == 7 * S

    usual.took("service.start", 5 * S)
    assert usual.of("service.start") == 5 * S


@given(st.integers(0, 10**12))
def test_a_measure_is_not_told_anew_where_it_is_much_the_same(told: int) -> None:
    for other in (told, told + told // 2, told - told // 2, told + NOTABLE_NS):
        assert not is_notable(told, other)
    assert is_notable(told, told + max(NOTABLE_NS, told // 2) + 1)


def test_a_view_tells_what_is_under_way_since_when_and_for_how_long_usually() -> None:
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    row = row_of(engine)
    assert view(row, 2 * S).doing == DoingView("bmc.look", 1_000)
    told(engine, 2 * S, Answered(1, "off", 2 * S))
    told(engine, 2 * S, Written(1, 4))
    assert view(row, 4 * S).doing == DoingView("bmc.switch_on", 2_000)
    told(engine, 3 * S, Ended(2))
    told(engine, 4 * S, Answered(3, "on", 4 * S))
    assert view(row, 6 * S).doing is None

    # It took 2 s until its outcome was read; and now it is off again.
    (look,) = (one for one in told(engine, 14 * S, Ticked()) if isinstance(one, Call))
    told(engine, 15 * S, Answered(look.id, "off", 15 * S))
    assert view(row, 17 * S).doing == DoingView("bmc.switch_on", 2_000, 2_000)
