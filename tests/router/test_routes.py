from collections.abc import Iterable

from bgp.attributes import (
    CLUSTER_LIST,
    LOCAL_PREF,
    MED,
    NEXT_HOP,
    OPTIONAL,
    ORIGIN,
    ORIGINATOR_ID,
    TRANSITIVE,
    Attribute,
    Attributes,
    as_path,
    with_attribute,
)
from bgp.messages import END_OF_TABLE, Open, Prefix, Update
from hypothesis import given
from hypothesis import strategies as st
from routes import Changes, Heard, Table
from state import dump, load

from tests.router.strategies import attributes

US = b"\x0a\x00\x00\x63"
ONE, TWO = Prefix.of("10.1.0.0/16"), Prefix.of("10.2.0.0/16")
EAST = Open(65_001, 90, b"\x0a\x00\x00\x01", ())
WEST = Open(65_001, 90, b"\x0a\x00\x00\x02", ())


def route(**numbers: int) -> Attributes:
    """A route with a path of so many steps, and these preferences."""
    found: Attributes = (
        Attribute(ORIGIN, TRANSITIVE, bytes((numbers.get("origin", 0),))),
        as_path([65_010] * numbers.get("steps", 1)),
        Attribute(NEXT_HOP, TRANSITIVE, b"\x0a\x00\x00\x07"),
    )
    for name, code, flags in (("pref", LOCAL_PREF, TRANSITIVE), ("med", MED, OPTIONAL)):
        if name in numbers:
            value = numbers[name].to_bytes(4, "big")
            found = with_attribute(found, Attribute(code, flags, value))
    return found


def reflected(attributes: Attributes, opened: Open, cluster: bytes = US) -> Attributes:
    """The route as this reflector sends it on."""
    added = Attribute(ORIGINATOR_ID, OPTIONAL, opened.router_id)
    return with_attribute(
        with_attribute(attributes, added), Attribute(CLUSTER_LIST, OPTIONAL, cluster)
    )


def said(table: Table, heard: Iterable[Heard]) -> list[Changes]:
    return [table.apply(one) for one in heard]


def test_a_route_is_reflected_with_who_brought_it() -> None:
    table = Table(US)
    assert said(
        table,
        [
            Heard("east", 1, EAST),
            Heard("east", 1, Update((), route(), (ONE, TWO))),
            Heard("east", 1, Update((ONE,))),
            Heard("east", 1, Update((ONE,))),
        ],
    ) == [
        {},
        {ONE: reflected(route(), EAST), TWO: reflected(route(), EAST)},
        {ONE: None},
        {},
    ]


def test_a_table_that_is_read_again_changes_only_what_has_changed_meanwhile() -> None:
    table = Table(US)
    said(table, [Heard("east", 1, EAST), Heard("east", 1, Update((), route(), (ONE, TWO)))])
    assert said(
        table,
        [
            Heard("east", 1, EAST),  # the same process, in a new session
            Heard("east", 2, EAST),
            Heard("east", 2, Update((), route(), (ONE,))),
            Heard("east", 2, END_OF_TABLE),
        ],
    ) == [{}, {}, {}, {TWO: None}]


def test_a_peer_that_comes_back_as_another_router_has_its_routes_told_so() -> None:
    table = Table(US)
    said(table, [Heard("east", 1, EAST), Heard("east", 1, Update((), route(), (ONE,)))])
    assert table.apply(Heard("east", 1, WEST)) == {ONE: reflected(route(), WEST)}


def test_an_earlier_process_of_the_source_changes_nothing() -> None:
    table = Table(US)
    said(table, [Heard("east", 2, EAST)])
    assert said(
        table,
        [
            Heard("east", 1, EAST),
            Heard("east", 1, Update((), route(), (ONE,))),
            Heard("west", 1, Update((), route(), (ONE,))),  # which has not been opened
        ],
    ) == [{}, {}, {}]


BETTER = {
    "local preference": ({"pref": 200, "steps": 9}, {}),
    "a shorter path": ({"steps": 1, "origin": 2}, {"steps": 2}),
    "a lower origin": ({"origin": 0, "med": 9}, {"origin": 1}),
    "a lower discriminator": ({"med": 1}, {"med": 2}),
    "the lower router": ({}, {}),
}


def test_the_best_route_wins_whoever_comes_first() -> None:
    for better, worse in BETTER.values():
        east = [Heard("east", 1, EAST), Heard("east", 1, Update((), route(**better), (ONE,)))]
        west = [Heard("west", 1, WEST), Heard("west", 1, Update((), route(**worse), (ONE,)))]
        for order in (east + west, west + east):
            table = Table(US)
            said(table, order)
            assert table.best == {ONE: reflected(route(**better), EAST)}
            assert table.apply(Heard("east", 1, Update((ONE,)))) == {
                ONE: reflected(route(**worse), WEST)
            }


def test_a_route_that_was_here_already_is_no_route() -> None:
    table = Table(US)
    looped = with_attribute(route(), Attribute(CLUSTER_LIST, OPTIONAL, b"\x01\x02\x03\x04" + US))
    assert said(
        table,
        [
            Heard("east", 1, EAST),
            Heard("east", 1, Update((), route(), (ONE,))),
            Heard("east", 1, Update((), looped, (ONE,))),
        ],
    )[2] == {ONE: None}


def test_a_route_with_more_than_can_be_sent_on_is_no_route() -> None:
    table = Table(US)
    large = with_attribute(route(), Attribute(8, OPTIONAL | TRANSITIVE, b"\x00" * 3_988))
    heard = [Heard("east", 1, EAST), Heard("east", 1, Update((), large, (ONE,)))]
    assert said(table, heard) == [{}, {}]


def test_what_is_unknown_here_goes_on_as_partial_or_ends_here() -> None:
    table = Table(US)
    passing, ending = Attribute(200, 0xC0, b"x"), Attribute(201, 0x80, b"x")
    strange = with_attribute(with_attribute(route(), passing), ending)
    heard = [Heard("east", 1, EAST), Heard("east", 1, Update((), strange, (ONE,)))]
    assert said(table, heard)[1] == {
        ONE: with_attribute(reflected(route(), EAST), Attribute(200, 0xE0, b"x"))
    }


PREFIXES = st.sampled_from([Prefix.of(f"10.{i}.0.0/16") for i in range(4)])
LISTS = st.lists(PREFIXES, max_size=3, unique=True).map(tuple)


@st.composite
def histories(draw: st.DrawFn) -> list[Heard]:
    """The messages of two peers: sessions that may begin anew, with another router id too."""
    sessions = {"east": 0, "west": 0}
    heard = []
    for _ in range(draw(st.integers(0, 12))):
        source = draw(st.sampled_from(["east", "west"]))
        begins = sessions[source] == 0 or draw(st.integers(0, 4)) == 0
        sessions[source] += begins and draw(st.integers(1 - min(1, sessions[source]), 1))
        if begins:
            opened = Open(65_001, 90, draw(st.sampled_from([EAST.router_id, WEST.router_id])), ())
            heard.append(Heard(source, sessions[source], opened))
            continue
        gone = draw(LISTS)
        fresh = tuple(one for one in draw(LISTS) if one not in gone)
        several = draw(st.one_of(attributes(), st.just(route()), st.just(route(pref=7))))
        update = Update(gone, several, fresh) if fresh else Update(gone)
        heard.append(Heard(source, sessions[source], update))
    return heard


@given(histories(), histories())
def test_a_state_makes_the_same_table_which_goes_on_the_same_way(
    before: list[Heard], after: list[Heard]
) -> None:
    table, copy = Table(US), Table(US)
    said(table, before)
    load(dump(table), copy)
    assert copy == table
    later = [Heard(one.source, one.incarnation + 12, one.message) for one in after]
    assert said(copy, later) == said(table, later)


def test_who_began_with_a_state_says_all_in_the_same_order() -> None:
    table, copy = Table(US), Table(US)
    three = Prefix.of("10.3.0.0/16")
    said(
        table,
        [
            Heard("east", 1, EAST),
            Heard("east", 1, Update((), route(), (TWO,))),
            Heard("east", 1, Update((), route(med=1), (ONE,))),
            Heard("east", 1, Update((), route(), (three,))),
        ],
    )
    load(dump(table), copy)
    for again in (WEST, END_OF_TABLE):
        first, second = (one.apply(Heard("east", 2, again)) for one in (table, copy))
        assert list(first) == list(second) == [ONE, TWO, three]


@given(histories())
def test_what_is_said_adds_up_to_the_best_routes(heard: list[Heard]) -> None:
    table, seen = Table(US), dict[Prefix, Attributes]()
    for changes in said(table, heard):
        for prefix, best in changes.items():
            assert seen.get(prefix) != best
            if best is None:
                del seen[prefix]
            else:
                seen[prefix] = best
    assert seen == table.best
