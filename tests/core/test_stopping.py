"""Steps that say how far they are, and that are told where something else is desired."""

from dataclasses import replace

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Change, SetDesired, UnsetDesired
from haptera.model.effects import StopStep
from haptera.model.events import Answered, Failed, Progressed, Proposed, Ticked, Written
from tests.core.scenario import BMC, NODE, ON, SIDE, begun, row_of, stored, told

STOP = StopStep(2, "bmc")
OFF = SetDesired(NODE, "power", "off", "site")


def running(*, stoppable: bool = True) -> Engine:
    """A node that is being switched on, by call 2."""
    module = replace(BMC, steps=(replace(ON, within_ms=60_000, stoppable=stoppable),))
    return begun(Engine(SIDE, Catalog(KINDS, [module]), stored(desired={"power": "on"}), 0, S))


def desire(engine: Engine, change: Change) -> list[object]:
    told(engine, S, Proposed(9, (change,)))
    return [one for one in told(engine, S + MS, Written(2, 5)) if isinstance(one, StopStep)]


@pytest.mark.parametrize("change", [OFF, UnsetDesired(NODE, "power")])
def test_a_step_is_told_once_that_something_else_is_desired(change: Change) -> None:
    engine = running()
    assert desire(engine, change) == [STOP]
    assert STOP not in told(engine, S + 2 * MS, Progressed(2, "half"))


def test_a_step_that_cannot_be_stopped_or_is_wanted_all_the_same_is_not_told() -> None:
    assert desire(running(stoppable=False), OFF) == []
    assert desire(running(), SetDesired(NODE, "power", "on", "user:eve")) == []


def test_a_step_whose_result_is_read_before_it_returns_is_not_told() -> None:
    engine = running()
    told(engine, 12 * S, Ticked())
    effects = told(engine, 12 * S, Answered(3, "on", 12 * S))
    assert STOP not in effects


def test_a_step_that_stopped_has_not_failed() -> None:
    engine = running()
    # Nothing is desired any more, so nothing that succeeds forgives a failure.
    desire(engine, UnsetDesired(NODE, "power"))
    told(engine, S + 3 * MS, Failed(2, "stopped at half", refused=True))
    row = row_of(engine)
    assert (row.stance.condition, row.attempts.failures, row.attempts.error) == (
        Condition.IDLE,
        {},
        None,
    )
    assert row.attempts.tried[-1].outcome == "stopped at half"


def test_how_far_a_step_is_stands_in_why_until_it_has_returned() -> None:
    engine = running()
    row = row_of(engine)
    told(engine, S + MS, Progressed(2, "fans", 0.25), Progressed(7, "of another call"))
    assert row.stance.why == "bmc.switch_on: runs, fans (25%)"
    doing = view(row, S + MS).doing
    assert doing is not None
    assert (doing.progress, doing.done) == ("fans", 0.25)
    told(engine, S + 2 * MS, Progressed(2, "memory"))
    assert row.stance.why == "bmc.switch_on: runs, memory"
    told(engine, S + 3 * MS, Failed(2, "jammed"))
    assert "memory" not in str(row.stance.why)
