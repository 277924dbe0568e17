"""Of what is not on nodes a cluster has so many at most, as each kind declares."""

from dataclasses import replace

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.kinds import KINDS
from haptera.model.changes import Change, Declare, Stored, StoredEntity, Undeclare
from haptera.model.effects import Reply
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Proposed
from tests.core.scenario import SIDE

EVE = "user:eve"
FULL = "health-rule: 4 would be more than 3; declare fewer of them"
# One for each machine, or for each thing that a site's own API has.
OF_MACHINES = {"health", "instance"}


def rule(number: int) -> EntityId:
    return EntityId("health-rule", f"r{number}", None)


def declared(*numbers: int) -> tuple[Change, ...]:
    return tuple(Declare(rule(one), {}, EVE) for one in numbers)


def refusal(changes: tuple[Change, ...], standing: int) -> str | None:
    """Why these are refused where so many rules are declared, and 3 may be."""
    kinds = {**KINDS, "health-rule": replace(KINDS["health-rule"], count_max=3)}
    there = [StoredEntity(rule(one), {}, EVE, {}, 3) for one in range(standing)]
    engine = Engine(SIDE, Catalog(kinds, []), Stored(7, 3, there, [], {}), 0, S)
    effects = engine.handle([Proposed(9, changes)], S)
    return next((one.refusal for one in effects if isinstance(one, Reply)), None)


@pytest.mark.parametrize(
    ("standing", "changes", "said"),
    [
        (2, declared(2), None),
        (2, declared(2, 3), FULL),
        (3, declared(3), FULL),
        (3, declared(0, 1, 2), None),  # they are there already
        (3, (Undeclare(rule(0)), *declared(3)), None),
        (3, (*declared(3), Undeclare(rule(0))), None),
        (3, (Undeclare(rule(0)), *declared(0, 3)), FULL),
        (3, tuple(Declare(node_id(f"n{one}"), {}, EVE) for one in range(9)), None),
        # Of an earlier version, which had no limit.
        (6, (Undeclare(rule(0)),), None),
        (6, (Undeclare(rule(0)), Undeclare(rule(1)), *declared(7)), None),
    ],
)
def test_a_write_makes_no_more_than_a_cluster_may_have(
    standing: int, changes: tuple[Change, ...], said: str | None
) -> None:
    assert refusal(changes, standing) == said


def test_each_kind_that_is_on_no_node_has_a_limit_or_is_of_machines() -> None:
    of_all = {one.name for one in KINDS.values() if one.of_cluster or one.everywhere}
    assert {name for name in of_all if KINDS[name].count_max is None} == OF_MACHINES
    assert all((KINDS[name].count_max or 0) <= 10_000 for name in of_all)
