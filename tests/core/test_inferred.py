"""What a time-out lets one infer: shown as such, looked at first, and never what was wished for."""

from dataclasses import replace

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.effects import Call, Work
from haptera.model.events import Answered, Failed, Ticked, Written
from haptera.model.facts import Method
from haptera.model.parts import Change, Step
from tests.core.scenario import BMC, LOOK, ON, PARENT, SIDE, looked, row_of, stored, told

WHERE = LOOK.requires
FORCE = Step("bmc", "force_off", "node", (Change("power", ("hung",), "off"),), WHERE, cost=9,
             context=PARENT)  # fmt: skip


def timed_out(fails_to: str, step: Step = ON) -> Engine:
    """A step was called at 1 s and never answered; what that lets one infer is known at 4 s."""
    steps = (replace(step, fails_to=fails_to), FORCE)
    catalog = Catalog(KINDS, [replace(BMC, steps=steps)])
    engine = looked("off", Engine(SIDE, catalog, stored(desired={"power": "on"}), 0, S))
    (call,) = told(engine, S, Written(1, 4))
    assert isinstance(call, Call)
    assert call.work is Work.STEP
    return engine


@pytest.mark.parametrize("inferred", ["on", "hung"])
def test_an_inferred_value_is_looked_at_before_anything_is_done(inferred: str) -> None:
    engine = timed_out(inferred)
    told(engine, 4 * S, Ticked())
    row = row_of(engine)
    shown = view(row, 4 * S).observed["power"]
    assert (shown.value, shown.known, shown.method) == (inferred, True, "inferred")
    reading = "bmc.switch_on: its outcome is being read"
    assert (row.stance.condition, row.stance.why) == (Condition.ACTING, reading)

    (look,) = told(engine, 5 * S, Ticked())
    assert isinstance(look, Call)
    assert (look.work, look.part) == (Work.LOOK, "look")


@pytest.mark.parametrize("ends_with_call", [False, True])
def test_while_an_outcome_is_read_it_is_told_until_when_what_waits_and_how_to_wait_less(
    *, ends_with_call: bool
) -> None:
    step = replace(ON, late_ms=1_500_000, ends_with_call=ends_with_call)
    engine = timed_out("hung", step)
    told(engine, 4 * S, Ticked())
    more = (
        "" if ends_with_call else "; if its work ends with its process, declare it `ends_with_call`"
    )
    for now, within in ((4 * S, "25 min"), (1_458 * S, "45 s"), (1_503 * S, None)):
        text = f"the outcome of bmc.switch_on, which may come within {within}"
        waits = f"{text}; until then no other step of node:n01 begins{more}"
        shown = view(row_of(engine), now).unblock
        assert shown == waits if within is not None else shown != waits


def test_an_inferred_value_does_not_meet_the_goal_and_a_reading_of_it_does() -> None:
    engine = timed_out("on")
    told(engine, 4 * S, Ticked())
    row = row_of(engine)
    assert row.seen({"power": "on"}) == ({}, {"power": "on"})
    assert row.seen({"power": "off"}) == ({"power": "on"}, {})

    (look,) = told(engine, 5 * S, Ticked())
    assert isinstance(look, Call)
    told(engine, 5 * S, Answered(look.id, "on", 5 * S))
    assert row.stance.condition is Condition.CONVERGED


def test_an_inferred_value_that_cannot_be_looked_at_is_remembered_and_still_inferred() -> None:
    engine = timed_out("hung")
    told(engine, 4 * S, Ticked())
    (look,) = told(engine, 5 * S, Ticked())
    assert isinstance(look, Call)
    told(engine, 5 * S, Failed(look.id, "no route to host"))

    row = row_of(engine)
    remembered = row.belief.remembered["power"]
    assert (list(row.belief.known), remembered.value, remembered.method) == (
        [],
        "hung",
        Method.INFERRED,
    )
    assert row.work.stepping is not None  # its outcome is still to be read
    for now in range(6, 60):
        calls = [one for one in told(engine, now * S, Ticked()) if isinstance(one, Call)]
        assert all(one.work is Work.LOOK for one in calls)
