"""Places that several ask for: who has few is never behind who has many."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from haptera.modules.netboot.shares import Shares

ALL_MAX, EACH_MAX = 6, 3
ASKED = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=60)


@given(ASKED)
def test_nobody_gets_so_many_that_somebody_else_gets_none(asked: list[tuple[str, bool]]) -> None:
    shares = Shares[int](all_max=ALL_MAX, each_max=EACH_MAX)
    held: dict[int, str] = {}
    for one, (who, enters) in enumerate(asked):
        before = Counter(held.values())
        if not enters:
            mine = [other for other, asker in held.items() if asker == who]
            shares.leave(who, mine[0] if mine else one)
            held = {other: asker for other, asker in held.items() if other not in mine[:1]}
            continue
        loser = shares.enter(who, one)
        if loser == one:
            # All are taken, and nobody would have fewer by giving one up.
            assert before.total() == ALL_MAX
            assert max(before.values()) <= before[who] + 1
            continue
        assert (loser is None) is (before[who] < EACH_MAX and before.total() < ALL_MAX)
        if loser is not None:
            asker = held.pop(loser)
            assert all(loser <= other for other, mine_is in held.items() if mine_is == asker)
            assert asker == who or before[asker] == max(before.values()) > before[who] + 1
        held[one] = who
        assert len(held) <= ALL_MAX
        assert Counter(held.values())[who] <= EACH_MAX
