"""Budgets of work: no more nodes are kept from jobs at once than a site says."""

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.kinds import KINDS
from haptera.model.changes import (
    Change,
    Declare,
    Desired,
    SetDesired,
    Stored,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.effects import Reply
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Proposed
from tests.core.scenario import SIDE

EVE = "user:eve"
# Of the four nodes of r1, half may be kept from jobs at once; those of r2 are nobody's concern.
RULE = {"of": "r1*", "per": "work", "share": 50}


def work(value: str, *nodes: str, owner: str = EVE) -> tuple[Change, ...]:
    return tuple(SetDesired(node_id(one), "work", value, owner) for one in nodes)


def refusal(changes: tuple[Change, ...], **standing: str) -> str | None:
    """Why these are refused where this is desired of the work of nodes."""
    nodes = [f"r{rack}n{at}" for rack in (1, 2) for at in range(4)]
    there = [
        StoredEntity(
            node_id(one), {}, "site",
            {"work": Desired(standing[one], EVE)} if one in standing else {}, 3,
        )
        for one in nodes
    ]  # fmt: skip
    rule = {name: Desired(value, "site") for name, value in RULE.items()}
    there.append(StoredEntity(EntityId("budget", "half", None), {}, "site", rule, 3))
    engine = Engine(SIDE, Catalog(KINDS, []), Stored(7, 3, there, [], {}), 0, S)
    effects = engine.handle([Proposed(9, changes)], S)
    return next((one.refusal for one in effects if isinstance(one, Reply)), None)


@pytest.mark.parametrize(
    ("standing", "changes", "said"),
    [
        ({}, work("draining", "r1n0", "r1n1"), None),
        ({}, work("held", "r1n0", "r1n1", "r1n2"), "not 3"),
        ({}, work("draining", "r2n0", "r2n1", "r2n2"), None),
        ({"r1n0": "held", "r1n1": "failed"}, work("draining", "r1n2"), "not 3; r1n0, r1n1 are"),
        # Another takes its place in the same write, whichever is said first.
        (
            {"r1n0": "held", "r1n1": "held"},
            (*work("draining", "r1n2"), UnsetDesired(node_id("r1n1"), "work")),
            None,
        ),
        ({"r1n0": "held", "r1n1": "held"}, (*work("open", "r1n0"), *work("held", "r1n3")), None),
        # Three of three nodes, of which one may be: those that are kept already may be kept on.
        (
            {"r1n0": "held", "r1n1": "held"},
            (Undeclare(node_id("r1n3")), *work("draining", "r1n0")),
            None,
        ),
        # What has failed is not asked, and counts; a controller has limits of its own.
        ({"r1n0": "held", "r1n1": "held"}, work("failed", "r1n2", "r1n3"), None),
        ({"r1n0": "held"}, work("draining", "r1n1", "r1n2", owner="controller:pools"), None),
        ({"r1n0": "held", "r1n1": "held"}, (Declare(node_id("r1n9"), {}, EVE),), None),
    ],
)
def test_a_write_keeps_no_more_nodes_from_jobs_than_a_budget_lets(
    standing: dict[str, str], changes: tuple[Change, ...], said: str | None
) -> None:
    found = refusal(changes, **standing)
    lets = "budget:half lets 2 of its nodes be kept from jobs at once, "
    assert found == (None if said is None else lets + said)


def test_where_no_budget_says_so_any_number_may_be_kept() -> None:
    there = [StoredEntity(node_id(f"n{at}"), {}, "site", {}, 3) for at in range(300)]
    engine = Engine(SIDE, Catalog(KINDS, []), Stored(7, 3, there, [], {}), 0, S)
    names = [f"n{at}" for at in range(300)]
    effects = [one for _ in range(9) for one in engine.handle([], S)]
    effects += engine.handle([Proposed(9, work("draining", *names))], S)
    assert not [one for one in effects if isinstance(one, Reply)]
