"""How often an engine wakes up, when nothing that it waits for has happened."""

from haptera.core.act.act import UNSERVED_AGAIN_NS
from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.core.state.turn import Turn
from haptera.core.sync.peers import SUSPECT_AFTER
from haptera.model.effects import Call, Work
from haptera.model.events import Failed, Ready, Ticked
from haptera.model.intent import Intent
from tests.core.scenario import NODE, parent, stored, told
from tests.core.sync.test_links import End

BEGUN = Intent("99-1", NODE, "bmc", "switch_on", S, "boot")
MINUTE = 60 * S


def woken(engine: Engine, until: int) -> list[tuple[int, list[Call]]]:
    """When it wakes up by itself, and what it calls then; each look fails at once."""
    turns = list[tuple[int, list[Call]]]()
    while (at := engine.deadline()) is not None and at <= until:
        calls = [one for one in told(engine, at, Ticked()) if isinstance(one, Call)]
        turns.append((at, calls))
        told(engine, at, *(Failed(one.id, "no route") for one in calls))
    return turns


def test_a_step_whose_module_is_not_there_to_read_its_outcome_costs_next_to_nothing() -> None:
    engine = parent(stored(BEGUN, desired={"power": "on"}))
    told(engine, S, Ticked())

    assert len(woken(engine, S + MINUTE)) <= MINUTE // UNSERVED_AGAIN_NS


def test_a_step_whose_outcome_cannot_be_read_is_decided_on_when_that_is_tried_again() -> None:
    engine = parent(stored(BEGUN, desired={"power": "on"}))
    (call,) = [one for one in told(engine, S, Ready("bmc")) if isinstance(one, Call)]
    told(engine, S, Failed(call.id, "no route"))

    turns = woken(engine, S + MINUTE)
    works = [[one.work for one in calls] for _, calls in turns]
    assert works == [[Work.LOOK]] * len(works)
    assert len(works) > 2


def test_nobody_wakes_up_for_the_silence_of_a_neighbour_that_speaks() -> None:
    end = End(None)
    end.start(0, 1, 1, [])
    end.links.alive(Turn(0), ["n01"], 0)
    suspect_at = SUSPECT_AFTER * S // 10
    for at in range(S, 10 * S, S):
        assert ("tier", "n01") not in [*end.timers.due(at)]
        end.links.alive(Turn(at), ["n01"], at)
    assert ("tier", "n01") not in [*end.timers.due(at + suspect_at - 1)]
    assert ("tier", "n01") in [*end.timers.due(at + suspect_at)]
