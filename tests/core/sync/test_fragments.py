"""A report in fragments: whole once each came, in any order, cut anyhow, and never fresher."""

from random import Random

from hypothesis import event, given
from hypothesis import strategies as st

from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.sync.fragments import gather
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.entity import node_id
from haptera.model.facts import Method
from haptera.model.messages import ObservedFragment, ObservedUpdate, SeenValue, Standing

N01 = node_id("n01")
NAMES = [f"v{at}" for at in range(6)]
# When each was read, and since when the entity stands so.
READ_AT = {name: at * 7 * MS // 2 for at, name in enumerate(NAMES)}
SINCE = 3 * MS


def seen(name: str, sent_at: int) -> SeenValue:
    return SeenValue(f"of {name}", True, Method.READ, (sent_at - READ_AT[name]) // MS, "m", name)


def fragments(version: int, sent_at: int, cut: int) -> list[ObservedFragment]:
    """What is told of one version, as it was sent then."""
    standing = Standing(Condition.STUCK, (sent_at - SINCE) // MS, "dead", None)
    some = [NAMES[:cut], NAMES[cut:]]
    values = [{name: seen(name, sent_at) for name in names} for names in some if names]
    count = len(NAMES)
    told = [ObservedFragment(N01, version, each, count) for each in values]
    return [ObservedFragment(N01, version, {}, count, standing), *told]


@given(st.integers(0, 2**32))
def test_a_report_in_fragments_is_whole_once_each_fragment_came(seed: int) -> None:
    rng = Random(seed)
    row = EntityState(N01, KINDS["node"])
    sent_at, now = 30 * MS, 30 * MS
    whole: ObservedUpdate | None = None
    heard = on_its_way = 0
    while whole is None or whole.version == 1:
        heard += 1
        sent_at += rng.randrange(5 * MS)
        now = max(now, sent_at + rng.randrange(5 * MS))
        on_its_way = max(on_its_way, now - sent_at)
        told = fragments(2, sent_at, rng.randint(0, len(NAMES)))
        old = fragments(1, sent_at, 3)
        fragment = rng.choice([*told, *old])
        whole = gather(row, fragment, now)
    event(f"fragments heard: {heard // 5 * 5}")
    assert whole.version == 2
    assert {name: (one.value, one.note) for name, one in whole.values.items()} == {
        name: (f"of {name}", name) for name in NAMES
    }
    assert row.link.fragments is None
    # As if no fragment had been on its way: that alone makes a value fresher than it is.
    for name, one in whole.values.items():
        assert now - one.age_ms * MS < READ_AT[name] + on_its_way + MS
    assert whole.standing is not None
    assert (whole.standing.condition, whole.standing.why) == (Condition.STUCK, "dead")


def test_a_fragment_that_came_earlier_counts_from_when_it_came() -> None:
    row = EntityState(N01, KINDS["node"])
    first = {name: seen(name, 30 * MS) for name in NAMES[:3]}
    then = {name: seen(name, 90 * MS) for name in NAMES[3:]}
    standing = Standing(Condition.STUCK, 27, None, None)
    assert gather(row, ObservedFragment(N01, 2, first, 6), 31 * MS) is None
    assert gather(row, ObservedFragment(N01, 2, {}, 6, standing), 41 * MS) is None
    whole = gather(row, ObservedFragment(N01, 2, then, 6), 91 * MS + 1)

    assert whole is not None
    assert [one.age_ms for one in whole.values.values()] == [91, 87, 84, 79, 76, 72]
    assert whole.standing == Standing(Condition.STUCK, 77, None, None)


def test_what_claims_to_be_of_fewer_than_it_is_takes_no_more_room() -> None:
    row = EntityState(N01, KINDS["node"])
    for at in range(50):
        value = {f"w{at}": seen(NAMES[0], 30 * MS)}
        assert gather(row, ObservedFragment(N01, 2, value, 3), 31 * MS) is None
    assert row.link.fragments is not None
    assert len(row.link.fragments.values) == 3
