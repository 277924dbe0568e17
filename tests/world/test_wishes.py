"""Wishes that change again and again: each is begun anew, whatever was done for those before it."""

from haptera.model.changes import SetDesired
from tests.world.history import CALM, NODES, cluster, settled, web

# A step that was under way is read to its end first. The back-off of the sixth wish was as long,
# and that of the twelfth a minute.
AT_ONCE_S = 4


def test_every_new_port_of_a_service_is_in_force_at_once() -> None:
    world = settled(cluster(1, CALM), 60)
    one = web(NODES[0])
    for port in range(9000, 9012):
        world.propose((SetDesired(one, "port", port, "site"),))
        world.run(0.01)
        assert world.settle(AT_ONCE_S), port
