"""Who is let in, and who gives way: each rule, and that the bounds hold whatever happens."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from haptera.runtime.network.crowd import Crowd

ALL_MAX = 6
PLACES = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"]


class Met:
    """A crowd, with what it did written down."""

    def __init__(self, all_max=ALL_MAX):
        self.counts = Counter()
        self.crowd = Crowd(all_max, self.counts)
        self.dropped = []

    def join(self, address, name):
        guest = self.crowd.join(address)
        if guest is not None:
            guest.drop = lambda: self.dropped.append(name)
        return guest


def test_of_all_who_wait_the_oldest_gives_way():
    met = Met(all_max=2)
    met.join("192.0.2.1", "a")
    b = met.join("192.0.2.2", "b")
    met.join("192.0.2.3", "c")
    assert (met.dropped, met.counts) == (["a"], {"gave way": 1})
    met.crowd.serve(b)
    met.crowd.wait(b)  # it waits anew, for a shorter time than the other
    met.join("192.0.2.4", "d")
    assert met.dropped == ["a", "c"]


def test_an_address_that_has_half_of_all_has_its_own_give_way():
    met = Met()
    met.join("192.0.2.9", "other")
    for name in "abcd":
        met.join("192.0.2.1", name)
    assert met.dropped == ["a"]


def test_networks_of_one_prefix_are_one():
    met = Met()
    for name in "abcd":
        met.join(f"2001:db8::{name}", name)
    met.join("2001:db8:0:1::1", "other network")
    assert met.dropped == ["a"]


def test_who_is_served_never_gives_way_so_nobody_else_is_let_in():
    met = Met(all_max=2)
    for name, address in (("a", "192.0.2.1"), ("b", "192.0.2.2")):
        met.crowd.serve(met.join(address, name))
    assert met.join("192.0.2.3", "c") is None
    assert (met.dropped, met.counts) == ([], {"refused": 1})


@given(
    st.lists(
        st.tuples(st.sampled_from(["join", "serve", "wait", "leave"]), st.integers(0, 9)),
        max_size=80,
    )
)
def test_the_bounds_hold_whatever_happens(deeds):
    met, present, served = Met(), {}, set()
    for number, (deed, which) in enumerate(deeds):
        names = sorted(present)
        if deed == "join":
            place = PLACES[which % len(PLACES)]
            guest = met.join(place, number)
            for gone in met.dropped:
                assert gone not in served
                present.pop(gone, None)
            if guest is None:
                here = [one for one in present.values() if one[1] == place]
                full = len(present) == ALL_MAX or len(here) == ALL_MAX // 2
                assert full
            else:
                present[number] = (guest, place)
        elif names:
            name = names[which % len(names)]
            getattr(met.crowd, deed)(present[name][0])
            if deed == "leave":
                del present[name]
            served = (served | {name}) if deed == "serve" else served - {name}
        assert len(present) <= ALL_MAX
        of_place = Counter(place for _, place in present.values())
        assert all(count <= ALL_MAX // 2 for count in of_place.values())
