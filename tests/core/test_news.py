"""What is published of a change says in what the entity changed, whoever changed it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.core.state.entity.verdict import Stands, Verdict
from haptera.core.state.limits import MS
from haptera.core.state.table import EntityTable
from haptera.core.views.news import check_published, publish
from haptera.core.views.query import view
from haptera.core.views.texts import check_texts
from haptera.kinds import KINDS
from haptera.kinds.node import Power
from haptera.model.answers.views import Condition, EntityView
from haptera.model.changes import Declare, SetDesired
from haptera.model.effects import Effect, Publish
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Event, Proposed, Released
from haptera.model.facts import Fact, Method
from haptera.model.news import News
from haptera.selectors.subscription import EVERY_TYPE
from tests.core.test_safety import Rig

N1, WEB = node_id("n1"), EntityId("service", "web", "n1")
OWNERS = st.sampled_from(["site", "user:eve"])
TIMES = st.integers(1, 20)


def a_table() -> EntityTable:
    """n1 with a service, published once."""
    table = EntityTable(KINDS)
    table.apply(Declare(N1, {}, "site"), 1)
    table.apply(Declare(WEB, {}, "site"), 2)
    alive = EVERY_TYPE - {News.GONE}
    assert publish(table, {WEB, N1}) == Publish((N1, WEB), (alive, alive))
    return table


def only(*types: News) -> Publish:
    return Publish((N1,), (frozenset(types),))


def test_what_only_grew_older_is_no_news() -> None:
    table = a_table()
    assert publish(table, {N1}) is None
    row = table.make(N1)
    row.belief.learn("power", Fact(Power.ON, "labnode", Method.READ, 10, 1))
    assert publish(table, {N1}) == only(News.OBSERVED)
    row.belief.learn("power", Fact(Power.ON, "labnode", Method.READ, 20, 1))
    assert publish(table, {N1}) is None


def test_each_change_is_of_its_type() -> None:
    table = a_table()
    row = table.make(N1)
    table.apply(SetDesired(N1, "power", "on", "site"), 3)
    assert publish(table, {N1}) == only(News.DESIRED)
    table.apply(Declare(N1, {"rack": "r1"}, "site"), 4)
    assert publish(table, {N1}) == only(News.DESIRED)
    row.belief.learn("power", Fact(Power.ON, "labnode", Method.READ, 10, 1))
    row.stance.verdict = Verdict(Condition.CONVERGED)
    assert publish(table, {N1}) == only(News.OBSERVED, News.CONDITION)
    row.belief.forget("power", 20)
    assert publish(table, {N1}) == only(News.OBSERVED)
    row.stance.verdict = Verdict(Condition.CONVERGED, "it waits")
    assert publish(table, {N1}) == only(News.CONDITION)


def test_what_is_no_longer_declared_is_gone() -> None:
    table = a_table()
    table.remove(N1)
    assert publish(table, {N1}) == only(News.GONE)


def test_desired_data_that_are_no_longer_in_force_are_news_of_what_is_observed() -> None:
    table = a_table()
    row = table.make(WEB)
    row.belief.learn("applied", Fact(row.digest("applied"), "service", Method.READ, 10, 1))
    publish(table, {WEB})
    table.apply(SetDesired(WEB, "port", 80, "site"), 3)
    assert publish(table, {WEB}) == Publish((WEB,), (frozenset({News.DESIRED, News.OBSERVED}),))


# What only grows older.
AGES = {"since_ms", "age_ms"}


def shown(table: EntityTable) -> object:
    """All that a view says, but for ages."""
    return without_ages(msgspec.to_builtins(view(table.make(N1), 10**9)))


def without_ages(told: object) -> object:
    match told:
        case dict():
            return {name: without_ages(one) for name, one in told.items() if name not in AGES}
        case list():
            return [without_ages(one) for one in told]
        case _:
            return told


@given(
    st.lists(
        st.one_of(
            st.builds(SetDesired, st.just(N1), st.just("power"), st.sampled_from(Power), OWNERS),
            st.builds(Declare, st.just(N1), st.just({"rack": "r1"}) | st.just({}), OWNERS),
            st.builds(
                Fact, st.sampled_from(Power), OWNERS, st.sampled_from(Method), TIMES, st.just(1)
            ),
            st.sampled_from(Condition),
            st.sampled_from([None, "it waits"]),
            st.builds(Stands, st.just(Condition.STUCK), TIMES, st.none(), st.text(max_size=1)),
        ),
        max_size=8,
    )
)
def test_whatever_is_shown_otherwise_is_news(changes: list[object]) -> None:
    table = a_table()
    row = table.make(N1)
    for number, change in enumerate(changes, start=9):
        before = shown(table)
        match change:
            case SetDesired() | Declare():
                table.apply(change, number)
            case Fact():
                row.belief.learn("power", change)
            case Condition():
                row.stance.verdict = replace(row.stance.verdict, condition=change)
            case Stands():
                row.stance.verdict = replace(row.stance.verdict, quotes=change)
            case _:
                row.belief.forget("power", 0)
                row.attempts.error = str(change)
                row.stance.verdict = replace(row.stance.verdict, why=row.attempts.error)
        news = publish(table, {N1})
        assert news is not None or shown(table) == before
        check_texts(table, number * MS)


@dataclass
class Listening(Rig):
    """A rig, and the views of one who reads an entity only when it is published."""

    views: dict[EntityId, EntityView] = field(default_factory=dict)

    def _perform(self, effect: Effect) -> list[Event]:
        for entity in effect.entities if isinstance(effect, Publish) else ():
            row = self.engine.table.get(entity)
            if row is None:
                del self.views[entity]
            else:
                self.views[entity] = view(row, 0)
        return super()._perform(effect)

    def desire(self, power: str) -> None:
        self._tell([Proposed(1, (SetDesired(node_id("n01"), "power", power, "site"),))])

    def let_go(self) -> None:
        self._tell([Released("n01")])


DAYS: dict[str, Callable[[Listening], object]] = {
    "a moment": lambda rig: rig.run(1),
    "half a minute": lambda rig: rig.run(30),
    "an hour": lambda rig: rig.run(3_600),
    "a node refuses": lambda rig: setattr(rig, "refusal", "2 jobs run"),
    "it permits": lambda rig: setattr(rig, "refusal", None),
    "a device refuses": lambda rig: setattr(rig, "refuses", "not now"),
    "it obeys": lambda rig: setattr(rig, "refuses", None),
    "looks fail": lambda rig: rig.finds.update({"look": None}),
    "looks work": lambda rig: rig.finds.clear(),
    "an agent is silent": lambda rig: rig.silent.add("n01"),
    "it speaks": lambda rig: rig.silent.clear(),
    "on is desired": lambda rig: rig.desire("on"),
    "off is desired": lambda rig: rig.desire("off"),
    "an admin lets go": lambda rig: rig.let_go(),
}


@settings(max_examples=30)
@given(st.lists(st.sampled_from(sorted(DAYS)), min_size=2, max_size=8))
def test_who_reads_only_what_is_published_sees_all_that_is_shown(days: list[str]) -> None:
    rig = Listening(("n01", "n02"))
    for day in (*days, "half a minute"):
        DAYS[day](rig)
        assert rig.views == {row.id: view(row, 0) for row in rig.engine.table}, day
        check_published(rig.engine.table)
