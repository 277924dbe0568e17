"""What went wrong in the provisioning stack when things broke, asked of haptera (L1 to L20)."""

import pytest

from haptera.core.state.limits import S
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired, UnsetDesired
from haptera.model.entity import EntityId, node_id
from haptera.testing.machine import Trouble
from tests.core.scenario import row_of
from tests.faults.simulated import at_rest, deeds, link_of
from tests.world.history import CALM, NODES, cluster, web

N01 = node_id("n01")


def test_a_link_that_is_down_for_50_s_costs_nothing_but_the_news() -> None:
    """L7: both sides went to ERROR and never joined again, though the link was back."""
    world = at_rest(1)
    before = deeds(world)
    world.network.cut.add(link_of("n01"))
    world.run(50)
    assert row_of(world.parent, N01).belief.remembered["agent"].value == "up"
    assert row_of(world.parent, web("n01")).stance.condition is Condition.WAITING

    world.network.cut.clear()
    world.run(2)
    assert world.converged()
    world.run(60)
    assert (deeds(world), set(world.incarnations.values())) == (before, {1})


@pytest.mark.slow
def test_a_link_that_flaps_for_ten_minutes_costs_no_command() -> None:
    """L7: each flap of over 40 s put both sides into ERROR for good."""
    world = at_rest(2)
    before = deeds(world)
    rng = world.clock.rng("flaps")
    end = world.clock.now + 600 * S
    while world.clock.now < end:
        world.network.cut ^= {link_of(rng.choice(NODES))}
        world.run(rng.random() * 12)
    world.network.cut.clear()
    world.run(5)
    assert world.converged()
    assert deeds(world) == before


def test_a_parent_that_was_dead_for_ten_minutes_comes_back_and_touches_nothing() -> None:
    """L8: nodes were planned anew from nothing, timed out at 90 s, and lost their power."""
    world = at_rest(3)
    before = deeds(world)
    world.parent.crash()
    world.run(600)
    assert row_of(world.agents["n01"], web("n01")).stance.condition is Condition.CONVERGED

    world.parent.start()
    assert world.settle(10)
    world.run(300)
    assert (deeds(world), set(world.incarnations.values())) == (before, {1})


def test_what_was_desired_last_outlives_the_parent() -> None:
    """L8: each change of configuration made at run time was lost with the parent."""
    world = at_rest(4)
    ticket = world.propose([SetDesired(web("n01"), "port", 8081, "user:eva")])
    world.run(0.1)
    assert world.parent.replies[ticket].refusal is None
    world.crash(world.parent)
    world.run(5)
    held = row_of(world.parent, web("n01")).desired.values["port"]
    assert (held.value, held.owner) == (8081, "user:eva")
    assert world.machines["n01"].services["web"] == row_of(world.parent, web("n01")).digest(
        "applied"
    )


@pytest.mark.slow
def test_a_node_with_far_more_state_than_a_datagram_holds_is_told_all_of_it() -> None:
    """L9: a node of over 9000 bytes could not be read: ERROR for good, on both sides."""
    world = cluster(5, CALM)
    services = [EntityId("service", f"job{number:02}", "n01") for number in range(40)]
    for one in services:
        world.propose(
            (
                Declare(one, {}, "site"),
                SetDesired(one, "run", "running", "site"),
                SetDesired(one, "command", one.name * 80, "site"),
            )
        )
    world.run(1)
    assert world.settle(30)
    running = world.machines["n01"].services
    assert [running[one.name] for one in services] == [
        row_of(world.parent, one).digest("applied") for one in services
    ]


def test_a_bmc_that_fails_is_told_of_and_costs_a_running_node_nothing() -> None:
    """L10: the last power state was kept as if it were known, without an alarm."""
    world = at_rest(7)
    before = deeds(world)
    world.machines["n01"].trouble = Trouble(failing=1.0)
    world.run(3)
    assert "power" not in row_of(world.parent, N01).belief.known
    world.run(117)
    node = row_of(world.parent, N01)
    assert (node.stance.condition, node.stance.why) == (
        Condition.STUCK,
        "labnode.look_power: no route to the BMC; given up after 6 attempts, for 1 min",
    )
    assert ("power" in node.belief.known, node.belief.remembered["power"].value) == (False, "on")
    assert row_of(world.agents["n01"], web("n01")).stance.condition is Condition.CONVERGED

    world.machines["n01"].trouble = Trouble()
    assert world.settle(70)
    assert deeds(world) == before


def test_a_service_is_mended_while_its_nodes_bmc_fails() -> None:
    """L10: what a node did for itself hung on what its parent last heard of its power."""
    world = at_rest(8)
    world.machines["n01"].trouble = Trouble(failing=1.0)
    world.run(60)
    world.machines["n01"].services.clear()
    world.run(12)
    assert "web" in world.machines["n01"].services


@pytest.mark.slow
def test_a_bmc_that_says_yes_and_does_nothing_is_not_believed() -> None:
    """L16: the answer 200 to a power command was taken for the power being on."""
    world = at_rest(9)
    machine = world.machines["n01"]
    machine.trouble = Trouble(idle=1.0)
    machine.cut()
    world.run(60)
    node = row_of(world.parent, N01)
    assert (node.belief.known["power"].value, node.stance.condition) == ("off", Condition.STUCK)
    assert node.stance.why is not None
    assert node.stance.why.startswith("labnode.switch_on: returned, but power is off")

    machine.trouble = Trouble()
    assert world.settle(2_000)  # it was given up for half an hour
    assert machine.power == "on"


def test_a_boot_that_takes_150_s_is_waited_for_and_its_power_left_alone() -> None:
    """L17: 90 s after the boot's first request the power was cut in the middle of it."""
    world = at_rest(10)
    machine = world.machines["n01"]
    boot = machine.booted
    machine.booted = lambda name: world.clock.after(150 * S, boot, name)
    machine.cut()
    world.run(100)
    node = row_of(world.parent, N01)
    assert (node.stance.condition, node.stance.why) == (
        Condition.STUCK,
        "nothing heard from the agent for 1 min",
    )
    world.run(60)
    assert world.converged()
    assert (len(machine.commands), "web" in machine.services) == (2, True)


def test_a_node_that_boots_is_believed_nothing_of_its_life_before() -> None:
    """L18: a booted agent was handed what its parent remembered of the boot before."""
    world = at_rest(11)
    machine = world.machines["n01"]
    machine.services.clear()
    machine.booted("n01")  # by itself, so fast that nobody saw its power go
    for process in (world.agents["n01"], world.parent):
        row = process.engine.table.get(web("n01")) if process.engine is not None else None
        assert row is None or row.belief.known == {}

    world.run(1)
    assert world.settle(30)
    assert "web" in machine.services
    for process in (world.agents["n01"], world.parent):
        facts = row_of(process, web("n01")).belief.known
        assert {name: fact.incarnation for name, fact in facts.items()} == {"run": 2, "applied": 2}


def test_what_a_node_mends_by_itself_is_no_error_at_its_parent() -> None:
    """L20: each change that the parent had not planned was logged as being lost."""
    world = at_rest(14)
    world.machines["n01"].services.clear()
    seen = set()
    for _ in range(150):
        world.run(0.1)
        row = row_of(world.parent, web("n01"))
        seen.add((row.stance.condition, row.attempts.error))
    assert "web" in world.machines["n01"].services
    assert {error for _, error in seen} == {None}
    assert Condition.STUCK not in {condition for condition, _ in seen}


@pytest.mark.parametrize("seed", range(5))
def test_a_change_is_acted_on_at_once_and_its_outcome_told_at_once(seed: int) -> None:
    """L14, Roll: each way waited for the next hello, up to 10 s; 12 to 20 s in all."""
    world = at_rest(20 + seed)
    world.run(world.clock.rng("phase").random())
    began_at = world.clock.now
    world.propose([SetDesired(web("n01"), "port", 8082, "site")])
    machine = world.machines["n01"]

    def replaced() -> bool:
        return machine.services.get("web") == row_of(world.parent, web("n01")).digest("applied")

    assert world.clock.run_until(began_at + S // 4, lambda: machine.starts[1:] != [])
    assert world.clock.run_until(began_at + S // 2, lambda: replaced() and world.converged())


def test_power_off_beside_a_running_agent_is_refused_in_words() -> None:
    """L13: power off alone was taken with 200 and nothing happened; the log said why."""
    world = at_rest(12)
    before = deeds(world)
    world.propose([SetDesired(N01, "power", "off", "site")])
    world.run(30)
    node = row_of(world.parent, N01)
    assert node.stance.condition is Condition.STUCK
    assert node.stance.why is not None
    assert "power" in node.stance.why
    assert "agent" in node.stance.why
    assert deeds(world) == before
    world.propose([SetDesired(N01, "power", "on", "site")])
    assert world.settle(5)


def test_power_off_alone_is_a_goal_and_is_reached() -> None:
    """L13: one had to clear two more values by hand before the node was switched off."""
    world = at_rest(13)
    world.propose([Declare(N01, {"platform": "labnode", "jobs": "none"}, "site")])
    world.propose([SetDesired(N01, "power", "off", "site"), UnsetDesired(N01, "agent")])
    world.run(1)
    assert world.clock.run_until(
        world.clock.now + 30 * S,
        lambda: row_of(world.parent, N01).stance.condition is Condition.CONVERGED,
    )
    world.run(60)
    machine = world.machines["n01"]
    assert (machine.power, [one.power for one in machine.commands]) == ("off", ["on", "off"])
