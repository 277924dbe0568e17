"""The kinds that hold for other entities: what may be said in them, and where they stand."""

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.core.views.query import summary, view
from haptera.kinds import KINDS
from haptera.kinds.rules import budget
from haptera.model.answers.views import Condition, DesiredView
from haptera.model.changes import Declare, SetDesired, Stored
from haptera.model.declared.desired_check import check_desired
from haptera.model.effects import Publish, Reply, Write
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.events import Proposed, Written
from haptera.model.news import News
from haptera.model.parts import Context
from haptera.planner.domain.pieces import at_once
from haptera.selectors.subscription import EVERY_TYPE
from tests.core.scenario import row_of

RULES = ("budget", "freeze", "policy")


@pytest.mark.parametrize(
    ("kind", "name", "value", "what"),
    [
        (
            "freeze",
            "of",
            "rack[1",
            "freeze.of: selector 'rack[1', character 5: a bracket that is not closed",
        ),
        ("freeze", "reason", " ", "freeze.reason: there is no reason"),
        ("freeze", "until_s", 0, "freeze.until_s: 0 is out of range"),
        ("freeze", "until_s", 10**12, "freeze.until_s: 1000000000000 is out of range"),
        ("policy", "of", "", "policy.of: selector '', character 1: a name is missing"),
        ("policy", "parts", "labnode.", "policy.parts: '' is not a name"),
        ("policy", "attempts", 0, "policy.attempts: 0 is out of range"),
        ("policy", "within_ms", -1, "policy.within_ms: -1 is out of range"),
        (
            "budget",
            "of",
            "node:a@b",
            "budget.of: selector 'node:a@b', character 7: a node is on itself",
        ),
        ("budget", "per", "rack", "budget.per: 'rack' is nothing to count by"),
        ("budget", "share", 101, "budget.share: 101 is out of range"),
    ],
)
def test_what_a_rule_cannot_say_is_refused_and_told(
    kind: str, name: str, value: str | int, what: str
) -> None:
    with pytest.raises(HapteraError) as raised:
        check_desired(KINDS[kind], name, value)

    assert raised.value.what == what
    assert raised.value.do is not None


def test_freezes_policies_and_budgets_are_told_everywhere() -> None:
    assert [KINDS[name].everywhere for name in RULES] == [True, True, True]
    assert not KINDS["node"].everywhere


def test_a_kind_without_variables_is_stored_shown_and_stands_idle() -> None:
    side = Side(Context.PARENT, None, 1, "boot", 5 * S)
    engine = Engine(side, Catalog(KINDS, []), Stored(7, 0, [], [], {}), 0, S)
    entity = EntityId("budget", "racks", None)
    changes = (Declare(entity, {}, "site"), SetDesired(entity, "at_once", 2, "site"))

    assert engine.handle([Proposed(1, changes)], S) == [Write(1, changes)]
    assert engine.handle([Written(1, 2)], S) == [
        Reply(1, 2),
        Publish((entity,), (EVERY_TYPE - {News.GONE},)),
    ]
    shown = view(row_of(engine, entity), 2 * S)
    assert (shown.entity, shown.condition, shown.chain, shown.node) == (
        "budget:racks", Condition.IDLE, [], None,
    )  # fmt: skip
    assert shown.desired == {"at_once": DesiredView(2, "site")}
    assert at_once(summary(engine.table)).counts == {"budget": {"idle": 1}}
    assert engine.deadline() is None


@pytest.mark.parametrize(("more", "key"), [({"of": "n*"}, "for"), ({"per_hour": 3}, "per_hour")])
def test_a_budget_of_health_has_nothing_that_only_steps_have(
    more: dict[str, str | int], key: str
) -> None:
    check = budget.kind.whole
    assert check is not None
    check({"per": "health", "at_once": 3})
    check({"per": "node", **more})
    with pytest.raises(HapteraError, match=f"a budget of health has no `{key}`"):
        check({"per": "health", "at_once": 3, **more})
