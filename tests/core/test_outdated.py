"""What a plan stands on that has changed: told exactly where its digest is another."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from haptera.core.modules.catalog import Catalog
from haptera.core.preview.outdated import outdated
from haptera.core.state.limits import S
from haptera.core.state.table import EntityTable
from haptera.kinds import KINDS
from haptera.model.answers.plan import Plan
from haptera.model.changes import Change, Declare, SetDesired, Undeclare
from haptera.model.entity import EntityId, node_id
from haptera.modules import load
from tests.core.test_preview import CATALOG, ON_OFF, RUNS, cluster, frozen, known, previewed, see
from tests.planner.strategies import show_each

N1, N2, N3 = map(node_id, ("n1", "n2", "n3"))
OFF = [SetDesired(one, "power", "off", "site") for one in (N1, N2, N3)]


def nodes() -> EntityTable:
    table = EntityTable(KINDS)
    for one in (N1, N2, N3):
        table.apply(Declare(one, {"platform": "labnode"}, "site"), 1)
        table.apply(SetDesired(one, "power", "on", "site"), 1)
    return table


def changed(
    table: EntityTable, *meanwhile: Change, changes: list[Change] | None = None
) -> list[str]:
    """What is told of a plan after these changes."""
    wanted = OFF if changes is None else changes
    then = previewed(table, *wanted)
    for change in meanwhile:
        table.apply(change, 2)
    return told(then, previewed(table, *wanted))


def told(then: Plan, now: Plan) -> list[str]:
    news = list(outdated(then, now))
    assert bool(news) == (then.digest != now.digest), news
    return news


def test_nothing_is_told_where_nothing_has_changed() -> None:
    assert changed(nodes()) == []


def test_a_value_that_somebody_else_changed_is_told_with_both_owners() -> None:
    assert changed(nodes(), SetDesired(N1, "power", "off", "user:eve")) == [
        "desired: node on n1: power was on (site) then, is off (user:eve) now",
        "observed: node on n1: would not be started any more",
    ]


def test_a_value_that_only_has_another_owner_is_told_too() -> None:
    assert changed(nodes(), SetDesired(N1, "power", "on", "user:eve")) == [
        "desired: node on n1: power was on (site) then, is on (user:eve) now"
    ]


def test_what_needs_no_change_any_more_is_told() -> None:
    meanwhile = (SetDesired(one, "power", "off", "site") for one in (N1, N3))
    assert changed(nodes(), *meanwhile) == [
        "desired: node on n[1,3]: power needs no change any more (it was to become off)",
        "observed: node on n[1,3]: would not be started any more",
    ]


def test_what_is_observed_otherwise_is_told_of_all_of_which_it_is_so() -> None:
    table = nodes()
    then = previewed(table, *OFF)
    for one in (N1, N2):
        known(table, one, power="on")
    assert told(then, previewed(table, *OFF)) == [
        "observed: node on n[1-2]: power was unknown then, is on now"
    ]


def test_a_module_with_other_parts_is_told() -> None:
    catalog = Catalog(KINDS, [load(one).manifest() for one in ("labnode", "jobs")])
    then = previewed(nodes(), *OFF, catalog=CATALOG)
    now = previewed(nodes(), *OFF, catalog=catalog)
    assert list(outdated(then, now)) == []  # Services have nothing to do with it.
    assert then.digest == now.digest
    fewer = Catalog(KINDS, [load("labnode").manifest()])
    assert told(then, previewed(nodes(), *OFF, catalog=fewer)) == [
        "parts: no module jobs serves it any more"
    ]


def test_what_is_gone_is_told() -> None:
    table = nodes()
    then = previewed(table, *OFF)
    table.apply(Undeclare(N3), 2)
    assert told(then, previewed(table, *OFF[:2])) == [
        "desired: node on n3: power needs no change any more (it was to become off)",
        "observed: node on n3: would not be started any more",
    ]


def test_a_freeze_that_was_laid_or_lifted_or_has_ended_is_told() -> None:
    table = nodes()
    free = previewed(table, *OFF)
    freeze = frozen(table, "n[1-2]", until_s=1_795_284_000)
    held = previewed(table, *OFF)
    words = "frozen by user:eve until 2026-11-21 18:00 UTC: board swap"
    assert told(free, held) == [f"freezes: node on n[1-2]: was not frozen then, is {words} now"]
    lifted = [f"freezes: node on n[1-2]: was {words} then, is not frozen now"]
    assert told(held, previewed(table, *OFF, wall_offset_ns=1_795_284_000 * S)) == lifted
    table.apply(Undeclare(freeze), 2)
    assert told(held, previewed(table, *OFF)) == lifted


def perturbed(random: Random, table: EntityTable) -> None:
    """Something has changed, or perhaps not."""
    number = random.randrange(6)
    node, service = node_id(f"n{number}"), EntityId("service", "web", f"n{number}")
    match random.randrange(5):
        case 0:
            see(table, node, random, random.choice(["power", "agent", "busy"]))
        case 1:
            see(table, service, random, "run")
        case 2:
            owner = random.choice(["site", "user:eve"])
            entity, name, values = random.choice([(node, "power", ON_OFF), (service, "run", RUNS)])
            table.apply(SetDesired(entity, name, random.choice(values), owner), 2)
        case 3:
            frozen(table, random.choice([f"n{number}", f"service:web@n{number}", "n9"]))
        case _:
            pass


def compared(random: Random) -> list[str]:
    table, changes = cluster(random, 6)
    then = previewed(table, *changes)
    perturbed(random, table)
    return told(then, previewed(table, *changes))


@given(st.randoms(use_true_random=False))
def test_something_is_told_exactly_where_the_digest_is_another(random: Random) -> None:
    compared(random)


def test_both_happen_often() -> None:
    news = list[bool]()
    show_each(st.randoms(use_true_random=False), 100, lambda one: news.append(bool(compared(one))))
    assert 20 < sum(news) < 80, sum(news)
