"""Simulated clusters: whatever breaks, promises hold, and in the end all is as desired."""

import gc

import pytest

from haptera.model.answers.views import Condition
from haptera.model.changes import Change, Declare, SetDesired, Undeclare
from haptera.model.entity import node_id
from haptera.model.events import Considered
from haptera.testing.machine import Machine
from tests.core.scenario import row_of, standing
from tests.world.history import CALM, NODES, ROUGH, History, cluster, settled, web

STEPS = 25


def check_commands(machine: Machine) -> None:
    """No command in flight twice; none sent again before power was read."""
    for first, second in zip(machine.commands, machine.commands[1:], strict=False):
        assert first.done_at is not None
        assert first.done_at <= second.at
        assert any(first.at < read.at < second.at for read in machine.reads)


def check_promises(history: History) -> None:
    """What was acknowledged is there, unless somebody asked for something else later."""
    allowed: dict[str, set[int]] = {}
    for ticket, (entity, port) in history.asked.items():
        reply = history.world.parent.replies.get(ticket)
        if reply is not None and reply.revision is not None:
            allowed[str(entity)] = {port}
        else:
            allowed.setdefault(str(entity), set()).add(port)
    acknowledged = {
        str(entity)
        for ticket, (entity, _) in history.asked.items()
        if (reply := history.world.parent.replies.get(ticket)) and reply.revision is not None
    }
    for entity, stored in history.world.parent.disk.entities.items():
        if str(entity) in acknowledged:
            assert stored.desired["port"].value in allowed[str(entity)]


@pytest.mark.parametrize("seed", range(25))
def test_whatever_breaks_promises_hold_and_all_ends_as_desired(seed: int) -> None:
    history = History(seed)
    history.unfold(STEPS)
    assert history.calm_down()

    check_promises(history)
    engine = history.world.parent.engine
    assert engine is not None
    for name, machine in history.world.machines.items():
        check_commands(machine)
        row = row_of(engine, web(name))
        assert (machine.power, machine.services["web"]) == ("on", row.digest("applied"))


def test_the_same_seed_is_the_same_history() -> None:
    stories = []
    for _ in range(2):
        history = History(7)
        history.unfold(STEPS)
        commands = [machine.commands for machine in history.world.machines.values()]
        stories.append((history.world.clock.now, commands, history.asked))
    assert stories[0] == stories[1]


def test_an_agent_that_is_killed_costs_no_power_action_and_no_service() -> None:
    world = settled(cluster(2, CALM), 30)
    for name in NODES:
        world.crash(world.agents[name])
    world.run(10)
    assert world.converged()
    assert [len(machine.commands) for machine in world.machines.values()] == [1] * len(NODES)


def test_a_node_cut_off_from_its_parent_goes_on_enforcing() -> None:
    world = settled(cluster(3, CALM), 30)
    world.network.cut = {frozenset(("parent", name)) for name in NODES}
    world.run(30)
    world.machines["n01"].services.clear()
    world.run(15)
    assert "web" in world.machines["n01"].services
    assert standing(world.parent, web("n01")) == (Condition.WAITING, "waits for node.agent=up")


def test_a_service_that_is_no_longer_declared_is_stopped_and_forgotten() -> None:
    world = settled(cluster(6, CALM), 30)
    world.propose([Undeclare(web("n01"))])
    world.crash(world.agents["n02"])  # and one that hears of it only after its restart
    world.propose([Undeclare(web("n02"))])
    world.run(20)
    running = [name for name, machine in world.machines.items() if "web" in machine.services]
    assert running == ["n03", "n04"]
    for name in ("n01", "n02"):
        engine = world.agents[name].engine
        assert engine is not None
        assert engine.table.get(web(name)) is None
        assert web(name) not in world.agents[name].disk.entities


def test_a_node_that_is_taken_out_with_its_services_stops_them_and_keeps_its_power() -> None:
    world = settled(cluster(9, CALM), 30)
    world.propose([Undeclare(web("n01")), Undeclare(node_id("n01"))])
    world.run(20)
    assert "web" not in world.machines["n01"].services
    assert world.machines["n01"].power == "on"
    again = (
        Declare(node_id("n01"), {"platform": "labnode"}, "site"),
        SetDesired(node_id("n01"), "agent", "up", "site"),
        Declare(web("n01"), {}, "site"),
        SetDesired(web("n01"), "run", "running", "site"),
        SetDesired(web("n01"), "command", "web", "site"),
    )
    world.propose(again)
    world.run(1)
    assert world.settle(30)
    assert "web" in world.machines["n01"].services
    assert len(world.machines["n01"].commands) == 1


def test_a_service_that_is_declared_again_while_it_leaves_stays() -> None:
    world = settled(cluster(7, CALM), 30)
    stored = world.parent.disk.entities[web("n01")]
    world.propose([Undeclare(web("n01"))])
    world.run(0.1)
    again: list[Change] = [Declare(web("n01"), {}, "site")]
    again += [
        SetDesired(web("n01"), name, one.value, "site") for name, one in stored.desired.items()
    ]
    world.propose(again)
    world.run(1)
    assert world.settle(30)
    assert "web" in world.machines["n01"].services


def test_a_machine_that_refuses_is_stuck_and_its_words_say_why() -> None:
    world = cluster(4, ROUGH)
    for machine in world.machines.values():
        machine.cut()
    world.machines["n02"].refuses = "the interlock is open"
    world.run(40)
    assert standing(world.parent, node_id("n02")) == (
        Condition.STUCK,
        "labnode.switch_on: the interlock is open",
    )


def test_a_full_disk_stops_acting_and_room_lets_it_go_on() -> None:
    world = settled(cluster(5, CALM), 30)
    world.parent.disk.full = True
    world.machines["n03"].cut()
    world.run(20)
    assert world.machines["n03"].power == "off"
    row = row_of(world.parent, node_id("n03"))
    assert row.stance.why == "state.db: disk is full; nothing was changed"
    world.parent.disk.full = False
    assert world.settle(30)
    assert world.machines["n03"].power == "on"


def test_what_the_core_lets_go_of_is_in_no_cycle() -> None:
    """A parent freezes what is old: an old cycle would be kept for long."""
    world = cluster(1, ROUGH)
    gc.collect()
    gc.disable()
    try:
        world.run(60)
        for port in range(1000, 1010):
            changes = [SetDesired(web(name), "port", port, "site") for name in NODES]
            world.parent.deliver([Considered(port, tuple(changes))])
            world.propose(changes)
            world.run(3)
            world.parent.lose_module("labnode")
        world.propose([Undeclare(web(name)) for name in NODES])
        world.run(30)
        assert gc.collect() == 0
    finally:
        gc.enable()
