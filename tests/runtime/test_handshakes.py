"""Whose handshakes are paid for: each place's are bounded, and those of who is known kept apart."""

from collections import Counter

from haptera.runtime.network.handshakes import (
    OF_KNOWN,
    OF_PLACE,
    OF_STRANGERS,
    PLACES_MAX,
    Handshakes,
)

S = 1_000_000_000


def admitted(pace, address, count, now=S):
    return sum(pace.admit(address, now) for _ in range(count))


def test_one_address_takes_its_own_budget_and_no_other():
    pace = Handshakes(counts := Counter())
    assert admitted(pace, "192.0.2.1", 1_000) == OF_PLACE[0]
    assert counts == {"too many handshakes": 1_000 - OF_PLACE[0]}
    assert admitted(pace, "192.0.2.2", 1) == 1
    # What a second brings.
    assert admitted(pace, "192.0.2.1", 1_000, now=2 * S) == OF_PLACE[1]


def test_all_of_a_network_of_ipv6_are_one():
    pace = Handshakes(Counter())
    took = [pace.admit(f"2001:db8::{number:x}", S) for number in range(1, 1_000)]
    assert sum(took) == OF_PLACE[0]


def test_however_many_strangers_there_are_who_is_known_is_served():
    pace = Handshakes(Counter(), known=["192.0.2.1"])
    pace.note_known("192.0.2.2")
    strangers = [f"198.51.{one // 250}.{one % 250}" for one in range(PLACES_MAX)]
    assert sum(admitted(pace, one, 1) for one in strangers) == OF_STRANGERS[0]
    assert admitted(pace, "192.0.2.3", 1) == 0
    assert [admitted(pace, f"192.0.2.{one}", 1) for one in (1, 2)] == [1, 1]


def test_who_is_known_is_bounded_too():
    known = [f"10.{one // 250}.{one % 250}.1" for one in range(2 * OF_KNOWN[0] // OF_PLACE[0])]
    pace = Handshakes(Counter(), known=known)
    assert sum(admitted(pace, one, OF_PLACE[0]) for one in known) == OF_KNOWN[0]
