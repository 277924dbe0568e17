"""Where the original behaved wrongly, asked of haptera (W1 to W19, in the catalogue's order)."""

import asyncio
from enum import StrEnum

import pytest

from haptera.core.state.entity.attempts import TRIED_MAX
from haptera.core.state.limits import MS, S
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired
from haptera.model.declared.schema import Kind, Plain, Variable
from haptera.model.effects import Call, Work
from haptera.model.entity import node_id
from haptera.model.events import Answered, Ended, Heard, Proposed, Ready, Ticked, Written
from haptera.model.facts import Method
from haptera.model.messages import Mark, Message, ObservedUpdate, SeenValue
from haptera.sdk import Module
from haptera.testing.bench import Bench
from tests.core.scenario import begun, parent, row_of, stored, told
from tests.faults.simulated import at_rest, deeds, freeze, thaw
from tests.world.history import web

N01, N02 = node_id("n01"), node_id("n02")


@pytest.mark.slow
@pytest.mark.campaign
def test_two_hundred_power_losses_leave_nothing_that_grows() -> None:
    """W4: the chain of one node had 633 edges after 200 power losses."""
    world = at_rest(40)
    sizes = []
    for count in range(200):
        world.machines["n01"].cut()
        world.run(1)
        assert world.settle(2_000), count
        assert world.parent.engine is not None
        node, service = row_of(world.parent, N01), row_of(world.parent, web("n01"))
        sizes.append(
            (
                len(node.attempts.barred) + len(service.attempts.barred),
                len(node.work.looks) + len(service.work.looks),
                len(node.attempts.failures) + len(service.attempts.failures),
                len(world.parent.disk.intents),
                len(world.agents),
            )
        )
        assert len(node.attempts.tried) <= TRIED_MAX
    assert sizes[20:] == [sizes[20]] * 180
    assert len(world.machines["n01"].commands) == 201


def test_no_time_limit_outlives_the_step_that_it_was_of() -> None:
    """W5: a timer from before a thaw put a healthy node through power on and discovery again."""
    engine = begun()
    told(engine, S, Ended(2))
    told(engine, S + MS, Answered(3, "on", S + MS))
    row = row_of(engine, N01)
    assert (row.stance.condition, row.work.stepping) == (Condition.CONVERGED, None)
    number = 4
    for second in range(2, 120):
        for effect in told(engine, second * S, Ticked()):
            assert isinstance(effect, Call), effect
            assert effect.work is Work.LOOK
            told(engine, second * S, Answered(effect.id, "on", second * S))
            number += 1
        assert row.stance.condition is Condition.CONVERGED
    assert number > 10


def test_a_freeze_and_thaw_while_a_step_is_out_costs_no_command_more() -> None:
    """W5: after the thaw the old time limit failed a healthy node: five needless mutations."""
    world = at_rest(45)
    machine = world.machines["n01"]
    machine.cut()
    assert world.clock.run_until(world.clock.now + 5 * S, lambda: len(machine.commands) == 2)
    freeze(world)
    thaw(world)
    assert world.settle(30)
    after = deeds(world)
    for _ in range(20):
        world.run(10)
        assert world.converged()
    assert (after[0], deeds(world)) == ((2, 2), after)
    assert {one.outcome for one in row_of(world.parent, N01).attempts.tried} == {"done"}


def test_a_step_is_done_with_what_is_desired_when_it_begins() -> None:
    """W6: later steps of a running chain were given the configuration that it had begun with."""
    world = at_rest(42)
    machine = world.machines["n01"]
    machine.cut()
    world.run(0.2)
    assert row_of(world.parent, N01).stance.condition is not Condition.CONVERGED
    before = len(machine.starts)
    world.propose([SetDesired(web("n01"), "command", "the next image", "site")])
    world.run(1)
    assert world.settle(30)
    assert machine.services["web"] == row_of(world.parent, web("n01")).digest("applied")
    assert len(machine.starts) == before + 1


def test_a_name_that_is_not_known_hides_no_other_of_the_same_update() -> None:
    """W7: the first name that did not resolve ended the merge; what was left out was chance."""
    world = at_rest(43)
    seen = {
        name: SeenValue(value, True, Method.READ, 0, "service")
        for name, value in {"colour": "red", "run": "failed", "applied": "0", "zeal": "9"}.items()
    }
    assert world.parent.engine is not None
    peer = world.parent.engine.neighbours.peer("n01")
    assert peer is not None
    version = row_of(world.parent, web("n01")).link.version + 1
    message = Message(
        peer.incarnation,
        0,
        world.schema,
        Mark(),
        Mark(0, version, 0),
        updates=(ObservedUpdate(web("n01"), version, seen),),
    )
    world.parent.deliver([Heard("n01", 1, message, world.clock.now)])
    known = {
        name: fact.value for name, fact in row_of(world.parent, web("n01")).belief.known.items()
    }
    assert known == {"run": "failed"}  # of a service that failed nothing can be in force
    assert world.settle(10)


def test_what_is_seen_twice_is_acted_on_once() -> None:
    """W8: duplicate and irrelevant discoveries fired the same mutation again."""
    world = at_rest(44)
    machine = world.machines["n01"]
    machine.cut()
    for _ in range(100):
        world.run(0.02)
        machine._report()
        machine._report()
    assert world.settle(30)
    assert len(machine.commands) == 2


def test_what_changes_beside_a_module_reaches_it_with_its_next_call() -> None:
    """W10: a changed configuration never reached a module that was running."""
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    moved = {"platform": "test", "address": "10.0.0.2"}
    told(engine, S, Answered(1, "off", S))
    told(engine, S, Proposed(9, (Declare(N01, moved, "site"),)))
    told(engine, S, Written(2, 5))
    (step,) = told(engine, S, Written(1, 6))
    assert isinstance(step, Call)
    assert step.attributes == moved


def test_what_happens_while_all_is_frozen_is_seen_then_and_mended_at_the_thaw() -> None:
    """W17: a frozen engine threw away all events."""
    world = at_rest(46)
    before = deeds(world)
    freeze(world)
    world.machines["n01"].services.clear()
    world.machines["n02"].cut()
    world.run(60)
    assert deeds(world) == before
    seen = (
        row_of(world.parent, web("n01")).belief.known["run"],
        row_of(world.parent, N02).belief.known["power"],
    )
    assert [fact.value for fact in seen] == ["stopped", "off"]

    thaw(world)
    assert world.settle(30)
    assert deeds(world) == [(1, 2), (2, 2), (1, 1), (1, 1)]


class Colour(StrEnum):
    UNKNOWN = "unknown"
    RED = "red"
    BLUE = "blue"


def test_a_kind_of_ones_own_needs_nothing_to_be_compiled_in() -> None:
    """W18: each value that could be discovered had to be registered when the daemon was built."""
    colour = Variable("lamp", "colour", Colour, {Colour.UNKNOWN: 0, Colour.RED: 1, Colour.BLUE: 2})
    lamp = Kind("lamp", (colour,), plain=(Plain("lamp", "watts", int, 8),))
    module: Module[list[Colour]] = Module("lamps", connect=lambda _: [Colour.RED])
    served = module.serves(colour)

    @served.look(every_s=5, outcomes=(Colour.RED, Colour.BLUE))
    async def look(lit: list[Colour]) -> Colour:
        return lit[-1]

    @served.step(Colour.RED, Colour.BLUE, within_s=5)
    async def paint(lit: list[Colour]) -> None:
        lit.append(Colour.BLUE)

    bench = Bench(module, {}, on=[Colour.RED], kinds={**KINDS, "lamp": lamp})
    stands = asyncio.run(bench.settle({"colour": "blue", "watts": 40}))
    assert (stands.condition, stands.observed["colour"].value) == (Condition.CONVERGED, "blue")
