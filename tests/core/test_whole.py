"""Values that mean nothing together are refused with the write that would have them together."""

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
from haptera.model.entity import EntityId
from haptera.model.events import Proposed
from tests.core.scenario import SIDE

LEDGER, TYPO = (EntityId("group", name, None) for name in ("ledger", "legder"))
EVE, SITE = "user:eve", "site"
RUNS = {"command": "serve", "replicas": 3}
NO_COMMAND = "it has no command, so none of its replicas would run (set its command as well"


def refusal(*changes: Change, standing: dict[str, str | int] = RUNS) -> str | None:
    """Why these are refused where this is desired of group:ledger already."""
    desired = {name: Desired(value, SITE) for name, value in standing.items()}
    stored = Stored(7, 3, [StoredEntity(LEDGER, {}, SITE, desired, 3)], [], {})
    engine = Engine(SIDE, Catalog(KINDS, []), stored, 0, S)
    effects = engine.handle([Proposed(9, changes)], S)
    return next((one.refusal for one in effects if isinstance(one, Reply)), None)


def given(entity: EntityId, owner: str = EVE, **values: str | int) -> tuple[Change, ...]:
    return tuple(SetDesired(entity, name, value, owner) for name, value in values.items())


def test_a_group_that_would_run_nothing_is_refused_with_the_name_that_was_meant() -> None:
    said = f"group:legder: {NO_COMMAND}; did you mean group:ledger?)"
    assert refusal(Declare(TYPO, {}, EVE), *given(TYPO, replicas=2)) == said


def test_a_group_does_not_lose_its_command_while_anything_else_is_desired_of_it() -> None:
    assert refusal(UnsetDesired(LEDGER, "command")) == f"group:ledger: {NO_COMMAND})"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (given(LEDGER, lead=5), "group.lead: there is no rank 5 of 3 replicas"),
        (given(LEDGER, leader="rank 3"), "group.leader: there is no rank 3 of 3 replicas"),
        (given(LEDGER, lead=2, replicas=2), "group.lead: there is no rank 2 of 2 replicas"),
    ],
)
def test_a_rank_that_a_group_does_not_have_is_not_to_lead(
    changes: tuple[Change, ...], said: str
) -> None:
    count = int(said.split()[-2])
    do = f"(write a rank from 0 to {count - 1}, or more replicas)"
    assert refusal(*changes) == f"group:ledger: {said} {do}"


def test_a_person_does_not_take_the_rank_away_that_is_to_lead() -> None:
    said = "group:ledger: group.lead: there is no rank 2 of 2 replicas"
    do = "(write a rank from 0 to 1, or more replicas)"
    assert refusal(*given(LEDGER, replicas=2), standing={**RUNS, "lead": 2}) == f"{said} {do}"


@pytest.mark.parametrize(
    ("changes", "standing"),
    [
        (given(LEDGER, lead=2), RUNS),
        (given(LEDGER, lead=4, replicas=5), RUNS),
        ((Declare(TYPO, {}, EVE), *given(TYPO, command="serve", replicas=2)), RUNS),
        ((UnsetDesired(LEDGER, "command"), UnsetDesired(LEDGER, "replicas")), RUNS),
        ((Undeclare(LEDGER),), RUNS),
        # None of them runs for now, whoever leads then.
        (given(LEDGER, replicas=0), {**RUNS, "lead": 2}),
        # A file says what should be, whoever is to lead for now.
        (given(LEDGER, SITE, replicas=2), {**RUNS, "lead": 2}),
        # What was so before is not this write's doing: the controller must be able to tell of it.
        (given(LEDGER, "controller:groups", says="nobody leads"), {"replicas": 2}),
        (given(LEDGER, "controller:groups", epoch=3), {**RUNS, "lead": 3}),
    ],
)
def test_what_means_something_is_written(
    changes: tuple[Change, ...], standing: dict[str, str | int]
) -> None:
    assert refusal(*changes, standing=standing) is None
