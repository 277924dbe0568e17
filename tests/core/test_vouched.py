"""A node that is heard has power: known at once, until a look tells, and no ground for harm."""

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.core.sync.peers import LOST_AFTER
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.effects import Call, Work, Write
from haptera.model.entity import node_id
from haptera.model.events import Alive, Answered, Enrolled, Event, Failed, Heard, Ready, Ticked
from haptera.model.messages import Mark, Message
from haptera.model.parts import Context
from haptera.modules import load
from tests.core.scenario import row_of

NODE = node_id("n01")
H = 5 * S
SIDE = Side(Context.PARENT, None, 0xA1, "boot", H)


def heard(at: int) -> Heard:
    return Heard("n01", 77, Message(1, 0, 0, Mark(), Mark()), at)


def restarted(power: str = "on") -> Engine:
    """A parent that had this node enrolled in an earlier process, and hears it before it looks."""
    values = {"power": Desired(power, "site")}
    entity = StoredEntity(NODE, {"platform": "labnode"}, "site", values, 1)
    stored = Stored(7, 1, [entity], [], {"n01": 1}, enrolled=["n01"])
    engine = Engine(SIDE, Catalog(KINDS, [load("labnode").manifest()]), stored, 0, S)
    engine.handle([heard(S)], S)
    return engine


def known(engine: Engine) -> dict[str, tuple[str, str]]:
    return {name: (one.value, one.by) for name, one in row_of(engine).belief.known.items()}


def test_a_node_that_is_heard_is_known_before_any_module_has_started() -> None:
    engine = restarted()

    assert known(engine) == {"power": ("on", "sync"), "agent": ("up", "sync")}
    assert row_of(engine).stance.condition is Condition.CONVERGED


def test_a_look_tells_from_then_on() -> None:
    engine = restarted()
    effects = engine.handle([Ready("labnode")], 2 * S)
    look = next(one.id for one in effects if isinstance(one, Call) and one.work is Work.LOOK)

    engine.handle([Answered(look, "on", 2 * S)], 2 * S)
    assert known(engine) == {"power": ("on", "labnode"), "agent": ("up", "sync")}
    assert row_of(engine).at_rest


@pytest.mark.parametrize("tells", [Answered(2, "off", 2 * S), Failed(2, "no answer")])
def test_where_a_look_tells_otherwise_or_nothing_the_hello_vouches_no_more(tells: Event) -> None:
    engine = restarted()
    engine.handle([Ready("labnode")], 2 * S)

    engine.handle([tells], 2 * S)
    engine.handle([Alive(("n01",), 2 * S + 1)], 2 * S + 1)

    assert ("on", "sync") not in known(engine).values()
    assert "agent" not in known(engine)


def test_with_its_agent_the_power_of_a_silent_node_is_only_remembered() -> None:
    engine = restarted()
    now = S
    while now <= S + LOST_AFTER * H // 10 and (due := engine.deadline()) is not None:
        now = max(due, now + 1)
        engine.handle([Ticked()], now)

    assert known(engine) == {}
    assert row_of(engine).belief.remembered.keys() == {"power", "agent"}


def test_no_disruptive_step_goes_by_it() -> None:
    engine = restarted(power="off")
    assert known(engine)["power"] == ("on", "sync")

    effects = engine.handle([Ready("labnode")], 2 * S)

    assert [one.part for one in effects if isinstance(one, Call)] == ["look_power", "look_power"]
    assert not any(isinstance(one, Write) for one in effects)
    assert "labnode.look_power looks at power first" in str(row_of(engine).stance.why)


@pytest.mark.parametrize("again", [[], [Enrolled("n01", 2)]], ids=["heard again", "booted"])
def test_a_machine_without_a_bmc_is_up_whenever_it_is_heard(again: list[Event]) -> None:
    """Nothing but its hellos tells of it: they count again after a silence, or a boot."""
    entity = StoredEntity(NODE, {}, "site", {"agent": Desired("up", "site")}, 1)
    stored = Stored(7, 1, [entity], [], {"n01": 1}, enrolled=["n01"])
    engine = Engine(SIDE, Catalog(KINDS, [load("labnode").manifest()]), stored, 0, S)
    engine.handle([heard(S)], S)
    assert known(engine)["agent"] == ("up", "sync")

    now = S
    while now <= S + LOST_AFTER * H // 10 and (due := engine.deadline()) is not None:
        now = max(due, now + 1)
        engine.handle([Ticked()], now)
    assert known(engine) == {}

    engine.handle(again, now + S)
    mark, incarnation = Mark(), 2 if again else 1
    back = Heard("n01", 78, Message(incarnation, 0, 0, mark, mark), now + 2 * S)
    engine.handle([back], now + 2 * S)
    assert known(engine)["agent"] == ("up", "sync")
    assert row_of(engine).stance.condition is Condition.CONVERGED
