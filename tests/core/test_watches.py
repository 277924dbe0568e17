"""A watch goes on for ever: by what is desired now, whatever was desired when it was opened."""

from dataclasses import replace

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.kinds import KINDS
from haptera.model.changes import Change, Declare, SetDesired
from haptera.model.declared.schema import digest
from haptera.model.effects import Call, Cancel, Effect, Reply, Work
from haptera.model.events import Answered, Proposed, Ready, WatchReported, Written
from tests.core.scenario import ATTRIBUTES, BMC, NODE, SIDE, row_of, stored, told

MOVED = ATTRIBUTES | {"bmc": "10.0.2.9"}


def watching() -> Engine:
    """A parent that has found its node on; call 1 watches it."""
    looks = tuple(replace(look, watched=True) for look in BMC.looks)
    state = stored(desired={"power": "on", "minos": "a"})
    engine = Engine(SIDE, Catalog(KINDS, [replace(BMC, looks=looks)]), state, 0, S)
    told(engine, S, Ready("bmc"))
    told(engine, S, Answered(2, "on", S))
    return engine


def changed(engine: Engine, change: Change) -> list[Effect]:
    told(engine, S, Proposed(9, (change,)))
    return told(engine, 2 * S, Written(1, 4))


@pytest.mark.parametrize(
    ("change", "attributes", "minos"),
    [
        (SetDesired(NODE, "minos", "b", "site"), ATTRIBUTES, "b"),
        (Declare(NODE, MOVED, "site"), MOVED, "a"),
    ],
)
def test_it_is_opened_anew_by_other_values_and_other_attributes(
    change: Change, attributes: dict[str, str], minos: str
) -> None:
    engine = watching()
    values: dict[str, str | int] = {"minos": minos}
    told_now = (NODE, attributes, values, digest(values), None)

    assert changed(engine, change) == [
        Reply(9, 4),
        Cancel(1, "bmc"),
        Call(3, Work.WATCH, "bmc", "look", *told_now),
    ]
    told(engine, 3 * S, WatchReported(1, "off", 3 * S))
    assert row_of(engine).belief.known["power"].value == "on"
    told(engine, 3 * S, WatchReported(3, "off", 3 * S))
    assert row_of(engine).belief.known["power"].value == "off"


@pytest.mark.parametrize(
    "change",
    [
        SetDesired(NODE, "power", "off", "site"),
        SetDesired(NODE, "minos", "a", "user:x"),
        SetDesired(NODE, "power_why", "over its cap", "site"),
    ],
)
def test_it_stays_open_where_nothing_differs_by_which_it_goes(change: Change) -> None:
    effects = changed(watching(), change)

    assert not [one for one in effects if isinstance(one, Cancel)]
