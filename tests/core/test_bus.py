"""The bus of changes: what a listener holds, however slow it is, is the truth for its filter."""

import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from haptera.core.views.bus import ASKED_MAX, Batch, Bus, BusNews, Shown, news_of
from haptera.model.answers.views import Condition, EntityView
from haptera.model.entity import EntityId, node_id
from haptera.model.news import News
from haptera.selectors.selector import parse_selector
from haptera.selectors.subscription import EVERY_TYPE, Cursor, Subscription, parse_wanted

N1, N2, N3 = (node_id(f"n{number}") for number in (1, 2, 3))
WEB1 = EntityId("service", "web", "n1")
IDS = (N1, N2, N3, WEB1, EntityId("service", "web", "n2"), EntityId("service", "db", "n1"))
ALIVE = EVERY_TYPE - {News.GONE}


def only(*types: News) -> frozenset[News]:
    return frozenset(types)


def made(*entities: EntityId, **limits: int) -> tuple[Bus, set[EntityId]]:
    there = set(entities)
    return Bus("e", lambda: there, **limits), there


def nothing() -> None:
    pass


def test_a_snapshot_comes_first_then_each_change_once_with_all_that_changed() -> None:
    bus, _ = made(N2, N1)
    listener = bus.listen(Subscription(), nothing)
    assert listener.drain(9) == Batch(
        fresh=True, changes={N1: only(), N2: only()}, cursor=Cursor("e", 0)
    )
    assert listener.drain(9) is None

    bus.publish([N2], [only(News.DESIRED)])
    bus.publish([N1], [only(News.OBSERVED)])
    bus.publish([N2], [only(News.CONDITION)])
    changes = {N2: only(News.DESIRED, News.CONDITION), N1: only(News.OBSERVED)}
    assert listener.drain(9) == Batch(fresh=False, changes=changes, cursor=Cursor("e", 3))


def test_what_is_told_in_part_is_numbered_so_that_the_rest_is_not_missed() -> None:
    bus, _ = made(N1, N2, N3)
    listener = bus.listen(Subscription(), nothing)
    cursors = [batch.cursor for batch in iter(lambda: listener.drain(2), None)]
    assert cursors == [None, Cursor("e", 0)]

    for entity in (N3, N1, N3, N2):
        bus.publish([entity], [only(News.OBSERVED)])
    first = listener.drain(1)
    assert first == Batch(False, {N3: only(News.OBSERVED)}, Cursor("e", 1), whole=False)
    assert first.cursor is not None
    again = bus.listen(Subscription(), nothing, since=first.cursor)
    rest = again.drain(9)
    assert rest is not None
    assert list(rest.changes) == [N1, N3, N2]


def test_a_listener_is_woken_once_for_all_that_it_has_not_taken() -> None:
    bus, _ = made(N1)
    woken: list[None] = []
    listener = bus.listen(parse_wanted(["condition"], None, "n1"), lambda: woken.append(None))
    listener.drain(9)
    for entity in (N1, N1, N2):
        bus.publish([entity], [only(News.CONDITION)])
        bus.publish([entity], [only(News.DESIRED)])
    assert len(woken) == 1
    listener.drain(9)
    bus.publish([N1], [only(News.CONDITION)])
    assert len(woken) == 2


def test_a_listener_too_far_behind_is_given_a_snapshot_anew() -> None:
    bus, there = made(N1, pending_max=2)
    woken: list[None] = []
    listener = bus.listen(Subscription(), lambda: woken.append(None))
    listener.drain(9)
    there |= set(IDS)
    bus.publish(IDS, [ALIVE] * len(IDS))
    assert (listener.ready, len(woken)) == (True, 1)
    batch = listener.drain(9)
    assert batch is not None
    assert (batch.fresh, sorted(batch.changes)) == (True, sorted(IDS))


def test_what_alike_listeners_are_told_is_worked_out_once() -> None:
    bus, _ = made(N1, N2)
    alike = [bus.listen(Subscription(), nothing) for _ in range(2)]
    for one in alike:
        one.drain(9)
    for entity in (N1, N2, N1):
        bus.publish([entity], [only(News.OBSERVED)])
    first, second = (one.drain(9) for one in alike)
    assert first is not None
    assert second is not None
    assert first.changes is second.changes


def test_alike_listeners_that_have_taken_less_are_told_of_more() -> None:
    bus, _ = made(N1, N2, N3)
    alike = [bus.listen(Subscription(), nothing) for _ in range(2)]
    for one in alike:
        one.drain(9)
    bus.publish([N1, N2, N3], [only(News.OBSERVED)] * 3)
    for count, one in enumerate(alike, 1):
        one.drain(count)
    bus.publish([N1], [only(News.OBSERVED)])
    rest = [one.drain(9) for one in alike]
    assert [list(one.changes) for one in rest if one is not None] == [[N2, N3, N1], [N3, N1]]


def test_a_listener_that_takes_nothing_holds_no_more_for_all_that_happens() -> None:
    bus, _ = made(N1, N2, pending_max=3)
    listener = bus.listen(Subscription(), nothing)
    listener.drain(9)
    for types in (only(News.OBSERVED), only(News.CONDITION)) * 50:
        bus.publish([N1, N2], [types, types])
        bus.check()
    both = only(News.OBSERVED, News.CONDITION)
    assert listener.drain(9) == Batch(False, {N1: both, N2: both}, Cursor("e", 100))


def test_a_large_snapshot_is_no_reason_to_begin_it_again() -> None:
    bus, _ = made(*IDS, pending_max=1)
    listener = bus.listen(Subscription(), nothing)
    first = listener.drain(2)
    assert first is not None
    bus.publish(list(first.changes), [only(News.OBSERVED)] * 2)
    rest = [batch.fresh for batch in iter(lambda: listener.drain(2), None)]
    assert rest == [False] * 3


def test_a_snapshot_asks_few_entities_at_once_whether_they_are_wanted() -> None:
    bus, _ = made(*(node_id(f"n{number}") for number in range(2 * ASKED_MAX + 1)))
    listener = bus.listen(Subscription(selector=parse_selector("n7")), nothing)
    batches = list(iter(lambda: listener.drain(9), None))
    assert [one.cursor for one in batches] == [None, None, Cursor("e", 0)]
    assert [entity for one in batches for entity in one.changes] == [node_id("n7")]


def test_what_changes_while_a_snapshot_is_told_is_told_once_at_its_end() -> None:
    bus, _ = made(N1, N2, N3)
    listener = bus.listen(Subscription(), nothing)
    first = listener.drain(1)
    assert first is not None
    (told_first,) = first.changes
    late = next(one for one in (N1, N2, N3) if one != told_first)
    bus.publish([late], [only(News.OBSERVED)])

    rest = [(one.changes, one.cursor) for one in iter(lambda: listener.drain(9), None)]
    (other,) = {N1, N2, N3} - {told_first, late}
    assert rest == [
        ({other: only()}, None),
        ({late: only(News.OBSERVED)}, Cursor("e", 1)),
    ]


def test_a_picture_ends_though_its_entities_change_and_change() -> None:
    bus, there = made(N1)
    listener = bus.listen(Subscription(), nothing)
    whole = []
    for number in range(2, 7):
        there.add(new := node_id(f"n{number}"))
        bus.publish([new], [ALIVE])
        batch = listener.drain(1)
        assert batch is not None
        whole.append(batch.whole)
    # Two were there, and the third came until the last of them was told.
    assert whole == [False, False, True, False, True]


def test_a_place_of_another_process_or_of_long_ago_is_not_known() -> None:
    bus, _ = made(N1, kept_max=2)
    for _ in range(3):
        bus.publish([N1], [only(News.OBSERVED)])
    known = [number for number in range(5) if bus.has(Cursor("e", number))]
    assert known == [1, 2, 3]
    assert not bus.has(Cursor("f", 2))


def test_what_came_and_went_meanwhile_is_told_as_it_is_now() -> None:
    views = {N1: view(N1)}
    batch = Batch(
        fresh=False,
        changes={N1: only(News.GONE, News.DESIRED), N2: only(News.GONE), N3: only(News.DESIRED)},
        cursor=None,
    )
    assert news_of(batch, views.get) == BusNews(
        [view(N1)], {"node:n1": [News.DESIRED]}, ["node:n2"], []
    )


def test_what_was_shown_and_is_wanted_no_more_has_left() -> None:
    views = {N1: view(N1), N2: view(N2)}
    wanted = {N1}
    shown = Shown(wanted.__contains__)

    def tell(*changed: EntityId, fresh: bool = False) -> BusNews:
        changes = dict.fromkeys(changed, only(News.CONDITION, News.GONE))
        return news_of(Batch(fresh, changes, None), views.get, shown)

    assert tell(N1, N2, fresh=True).views == [view(N1)]
    wanted.clear()
    assert tell(N1, N2).left == ["node:n1"]
    assert tell(N1, N2).left == []
    wanted.add(N2)
    assert tell(N2).views == [view(N2)]
    assert tell(N2, fresh=True).views == [view(N2)]
    views.clear()
    # Of what was never shown it is not said that it is gone either.
    assert tell(N1, N2).gone == ["node:n2"]


def test_there_is_no_news_of_another_sort() -> None:
    with pytest.raises(Exception, match="there is no event type 'moved'"):
        parse_wanted(["moved"], None, None)


def view(entity: EntityId, revision: int = 0) -> EntityView:
    return EntityView(
        entity=str(entity),
        kind=entity.kind,
        name=entity.name,
        node=entity.node,
        revision=revision,
        attributes={},
        desired={},
        observed={},
        condition=Condition.IDLE,
        chain=[],
        since_ms=0,
    )


class Holder:
    """Somebody who listens, and holds what was told: the last change number of each type."""

    def __init__(self, bus: Bus, wanted: Subscription) -> None:
        self.bus, self.wanted = bus, wanted
        self.held: dict[EntityId, dict[News, int]] = {}
        self.cursor: Cursor | None = None
        # How all was that the picture has to have, at the least, once it is whole.
        self.then: dict[EntityId, dict[News, int]] = {}
        self.listener = bus.listen(wanted, nothing)

    def take(self, truth: dict[EntityId, dict[News, int]], count: int) -> bool:
        if self.listener.gathers:
            self.then = self.of_concern(truth)
        batch = self.listener.drain(count)
        if batch is None:
            return False
        if batch.fresh:
            self.held = {}
        for entity, types in batch.changes.items():
            if entity in truth:
                # Of what it holds, it looks only at what is said to have changed.
                looked_at = types & ALIVE if entity in self.held else ALIVE
                numbers = {one: truth[entity][one] for one in looked_at}
                self.held.setdefault(entity, {}).update(numbers)
            elif News.GONE in types:
                self.held.pop(entity, None)
        self.cursor = batch.cursor or (None if batch.fresh else self.cursor)
        if batch.whole:
            self.check_picture(truth)
        return True

    def check_picture(self, truth: dict[EntityId, dict[News, int]]) -> None:
        """Nothing that is still there is older than it was when the picture was begun."""
        for entity, numbers in self.then.items():
            held = self.held.get(entity, {})
            if entity in truth:
                assert {
                    one: held.get(one, -1) >= at for one, at in numbers.items()
                } == dict.fromkeys(numbers, True)

    def check(self, truth: dict[EntityId, dict[News, int]]) -> None:
        """All taken, it holds the truth, as far as it wants it."""
        while self.take(truth, 2):
            pass
        assert self.of_concern(self.held) == self.of_concern(truth)

    def of_concern(self, state: dict[EntityId, dict[News, int]]) -> dict[EntityId, dict[News, int]]:
        """Who wants to hear only of what is gone is not told of what comes."""
        types = self.wanted.types
        return {
            entity: {one: numbers[one] for one in numbers if one in types}
            for entity, numbers in state.items()
            if entity in self.wanted and types & numbers.keys()
        }

    def resume(self) -> None:
        """The line broke; go on from the last cursor where that is known, else anew."""
        self.listener.close()
        known = self.cursor if self.cursor and self.bus.has(self.cursor) else None
        event("resumed" if known else "began anew")
        self.listener = self.bus.listen(self.wanted, nothing, known)


# An entity mostly changes, and goes now and then.
CHANGES = st.one_of(
    *[st.sets(st.sampled_from(sorted(ALIVE)), min_size=1, max_size=2)] * 4,
    st.just({News.GONE}),
)


class Listening(RuleBasedStateMachine):
    """Any interleaving of changes, slow takers and broken lines, against the plain truth."""

    def __init__(self) -> None:
        super().__init__()
        self.truth: dict[EntityId, dict[News, int]] = {}
        self.bus = Bus("e", lambda: self.truth, pending_max=4, kept_max=6)
        self.count = 0
        self.all_holders: list[Holder] = []

    holders: Bundle[Holder] = Bundle("holders")

    @precondition(lambda self: len(self.all_holders) < 3)
    @rule(
        target=holders,
        # Many want the same, for those share what is worked out.
        types=st.just(set(News))
        | st.sets(st.sampled_from(News), min_size=1).map(lambda some: some | {News.GONE}),
        kinds=st.sampled_from([None, None, frozenset({"node"}), frozenset({"service"})]),
        select=st.sampled_from(["*", "*", "n1", "service:web@n[1-2]"]),
    )
    def listen(self, types: set[News], kinds: frozenset[str] | None, select: str) -> Holder:
        holder = Holder(self.bus, Subscription(frozenset(types), kinds, parse_selector(select)))
        self.all_holders.append(holder)
        return holder

    @rule(changed=st.dictionaries(st.sampled_from(IDS), CHANGES, min_size=1, max_size=2))
    def change(self, changed: dict[EntityId, set[News]]) -> None:
        self.count += 1
        types = [self._do(entity, types) for entity, types in changed.items()]
        self.bus.publish(list(changed), types)

    def _do(self, entity: EntityId, types: set[News]) -> frozenset[News]:
        if News.GONE in types:
            self.truth.pop(entity, None)
            return only(News.GONE)
        if entity not in self.truth:
            types = set(ALIVE)
        self.truth.setdefault(entity, {}).update(dict.fromkeys(types, self.count))
        return frozenset(types)

    @rule(holder=holders, count=st.integers(1, 4))
    def take(self, holder: Holder, count: int) -> None:
        holder.take(self.truth, count)

    @rule(holder=holders)
    def drain(self, holder: Holder) -> None:
        holder.check(self.truth)

    @rule(holder=holders, count=st.integers(0, 3))
    def line_breaks(self, holder: Holder, count: int) -> None:
        if count:
            holder.take(self.truth, count)
        holder.resume()

    def teardown(self) -> None:
        for holder in self.all_holders:
            holder.check(self.truth)

    @invariant()
    def bounded(self) -> None:
        self.bus.check()


TestListening = Listening.TestCase
TestListening.settings = settings(max_examples=100, stateful_step_count=40)
