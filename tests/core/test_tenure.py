"""Of all who contend for a lease, at most one acts at any instant, whatever clocks and links do."""

from typing import NamedTuple

from hypothesis import event, example, given
from hypothesis import strategies as st

from haptera.core.safety.tenure import LeaseChoice, LeaseRecord, LeaseSeeker, Tenure, choose

LENGTH = 10_000
NAMES = "abc"


class Try(NamedTuple):
    """A seeker asks; the store answers `out` later, which arrives `back` later still."""

    at: int
    who: str
    out: int
    back: int


# On a grid, so that one often asks just as the lease of another ends.
tries = st.lists(
    st.builds(
        Try,
        st.integers(0, 120).map(lambda grid: grid * 500),
        st.sampled_from(NAMES),
        st.sampled_from((0, 0, 500, 12_000)),
        st.sampled_from((0, 0, 500, 12_000)),
    ),
    min_size=10,
    max_size=60,
)
# How fast the clock of each goes, in percent of the store's.
rates = st.fixed_dictionaries({name: st.sampled_from((95, 100, 105)) for name in NAMES})


@example([Try(0, "a", 0, 0), Try(LENGTH, "b", 0, 0)], {"a": 95, "b": 100, "c": 100})
@example([Try(0, "a", 12_000, 0), Try(LENGTH, "b", 12_000, 0)], dict.fromkeys(NAMES, 100))
@given(tries, rates)
def test_no_two_act_at_the_same_instant(asked: list[Try], rate: dict[str, int]) -> None:
    tenures = {name: Tenure() for name in NAMES}
    acts: list[tuple[int, int, str]] = []
    record, ends_at = LeaseRecord(), 0
    for one in sorted(asked, key=lambda one: one.at + one.out):
        taken_at = one.at + one.out
        if taken_at >= ends_at:
            record = LeaseRecord(None, record.term, record.begun_by)
        own = LeaseSeeker(one.who, 7, 7)
        if choose(own, record) is not LeaseChoice.TAKE:
            assert record.holder not in (None, one.who)
            continue
        record, ends_at = LeaseRecord(one.who, 7, one.who), max(ends_at, taken_at + LENGTH)
        # The seeker counts on its own clock, from when it asked.
        tenures[one.who].renewed(one.at * rate[one.who] // 100, LENGTH)
        acts.append((taken_at + one.back, tenures[one.who].until * 100 // rate[one.who], one.who))
    acts = [(since, until, who) for since, until, who in acts if since < until]
    event(f"{len({who for *_, who in acts})} of them acted")
    for since, until, who in acts:
        others = [one for one in acts if one[2] != who and since < one[1] and one[0] < until]
        assert not others, (since, until, who, others)


terms = st.integers(0, 3)


@given(st.sampled_from(NAMES), terms, st.booleans(), terms, st.sampled_from(NAMES))
def test_an_older_store_never_gets_the_lease(
    name: str, known: int, promotes: bool, begun: int, begun_by: str
) -> None:
    own = LeaseSeeker(name, known, known + promotes)
    free = choose(own, LeaseRecord(None, begun, begun_by))
    lacks = begun > known and not (promotes and begun == known + 1 and begun_by == name)
    assert free is (LeaseChoice.GIVE_UP if lacks else LeaseChoice.TAKE)
    held = choose(own, LeaseRecord("another", begun, begun_by))
    assert held is (LeaseChoice.GIVE_UP if lacks else LeaseChoice.WAIT)


def test_what_is_left_ends_before_the_store_may_end_it() -> None:
    tenure = Tenure()
    tenure.renewed(1_000, 100)
    assert (tenure.left_ns(1_000), tenure.left_ns(1_094), tenure.left_ns(1_095)) == (95, 1, 0)
    tenure.renewed(900, 100)
    assert tenure.until == 1_095
