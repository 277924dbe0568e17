"""Policies in a simulated cluster: they reach both sides, and are obeyed where parts run."""

from haptera.model.changes import Change, Declare, SetDesired, Undeclare
from haptera.model.entity import EntityId, node_id
from haptera.testing.world import World
from tests.core.scenario import row_of
from tests.world.history import CALM, cluster, settled, web

POLICY = EntityId("policy", "p1", None)


def policy(**values: str | int) -> list[Change]:
    sets = [SetDesired(POLICY, name, value, "site") for name, value in values.items()]
    return [Declare(POLICY, {}, "site"), *sets]


def attempts(world: World) -> dict[str, int]:
    """What both sides take for the policy of starting a service."""
    engines = {name: agent.engine for name, agent in world.agents.items()}
    engines["parent"] = world.parent.engine
    found = {}
    for name, engine in engines.items():
        assert engine is not None
        step = engine.catalog.step("service", "start")
        assert step is not None
        found[name] = engine.hands.policies.terms(web("n01"), step).policy.attempts
    return found


def test_a_policy_holds_on_both_sides_over_restarts_until_it_is_gone() -> None:
    world = settled(cluster(1, CALM), 30)
    declared = attempts(world)
    world.propose(policy(of="service:web", parts="service.start", attempts=3))
    world.run(2)
    assert attempts(world) == dict.fromkeys(declared, 3)

    world.crash(world.parent)
    world.crash(world.agents["n01"])
    world.run(5)
    assert attempts(world) == dict.fromkeys(declared, 3)
    world.propose([Undeclare(POLICY)])
    world.run(2)
    assert attempts(world) == declared


def test_a_refusing_device_is_asked_as_often_as_a_policy_says_and_anew_when_it_changes() -> None:
    world = settled(cluster(2, CALM), 30)
    world.propose(policy(of="n01", parts="labnode", attempts=1, cool_down_ms=600_000))
    world.run(1)
    machine = world.machines["n01"]
    machine.refuses = "the fuse is blown"
    machine.cut()
    world.run(120)
    row = row_of(world.parent, node_id("n01"))
    assert row.attempts.error == (
        "labnode.switch_on: the fuse is blown; given up after 1 attempt, for 10 min"
    )
    assert [one.outcome for one in row.attempts.tried].count("the fuse is blown") == 1

    machine.refuses = None
    world.propose([SetDesired(POLICY, "attempts", 2, "site")])
    assert world.settle(20)
    assert machine.power == "on"
