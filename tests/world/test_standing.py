"""What an agent says of its own is what its parent answers, a second later at the most."""

from haptera.core.state.limits import S
from haptera.core.views.query import view
from haptera.testing.world_process import WorldProcess
from tests.core.scenario import row_of
from tests.world.history import CALM, cluster, settled, web

SERVICE = web("n01")
SAMPLES_A_SECOND = 20


def said(process: WorldProcess, now: int) -> tuple[str, str | None]:
    """How the service stands, by this process."""
    seen = view(row_of(process, SERVICE), now)
    return seen.condition, seen.why


def test_the_parent_answers_in_the_agent_s_words_within_a_second() -> None:
    world = settled(cluster(3, CALM), 30)
    agent = world.agents["n01"]
    lately = [said(agent, world.clock.now)] * SAMPLES_A_SECOND
    steady: set[tuple[str, str | None]] = set()
    for sample in range(60 * SAMPLES_A_SECOND):
        if sample % (3 * SAMPLES_A_SECOND) == 0:
            world.machines["n01"].services.clear()
            agent.lose_module("service")
        world.run(1 / SAMPLES_A_SECOND)
        lately = [*lately[1:], said(agent, world.clock.now)]
        if len(set(lately)) == 1:
            steady.add(lately[0])
            assert said(world.parent, world.clock.now) == lately[0], f"{world.clock.now / S:.2f} s"
    assert {condition for condition, _ in steady} == {"converged", "stuck", "waiting"}
