"""The controller at its desk: a simulated cluster, a clock of its own, and nothing waits."""

from examples.keep_on.keep_on import Settings, controller
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.testing.desk import Desk

NODES = ("n1", "n2", "n3", "n4", "n5")
SETTINGS = {"nodes": "n[1-5]", "count": "3"}


def desk() -> Desk[Settings]:
    return Desk(controller, SETTINGS, NODES)


def declare(one: Desk[Settings], *nodes: str) -> None:
    one.propose(*(Declare(node_id(name), {"platform": "labnode"}, "site") for name in nodes))


def on(one: Desk[Settings]) -> list[str]:
    return [name for name, machine in one.machines.items() if machine.power == "on"]


def test_so_many_are_kept_on_and_no_more() -> None:
    with desk() as one:
        declare(one, *NODES)
        assert one.until(lambda: on(one) == ["n1", "n2", "n3"], within_s=30)
        one.run(60)
        assert on(one) == ["n1", "n2", "n3"]


def test_one_that_loses_its_power_gets_it_back() -> None:
    with desk() as one:
        declare(one, *NODES)
        one.until(lambda: len(on(one)) == 3, within_s=30)
        one.machines["n2"].cut()
        assert one.until(lambda: on(one) == ["n1", "n2", "n3"], within_s=60)


def test_one_whose_bmc_refuses_is_replaced_by_a_spare_and_left_alone() -> None:
    with desk() as one:
        one.machines["n2"].refuses = "the interlock is open"
        declare(one, *NODES)
        assert one.until(lambda: on(one) == ["n1", "n3", "n4"], within_s=30)
        one.run(60)
        assert on(one) == ["n1", "n3", "n4"]
        view = one.entity(node_id("n2"))
        assert view is not None
        assert view.desired == {}


def test_without_a_spare_it_stays_with_those_it_has() -> None:
    with desk() as one:
        one.machines["n2"].refuses = "the interlock is open"
        declare(one, "n1", "n2", "n3")
        assert one.until(lambda: on(one) == ["n1", "n3"], within_s=30)
        one.run(30)
        declare(one, "n4")
        assert one.until(lambda: on(one) == ["n1", "n3", "n4"], within_s=30)


def test_what_others_want_of_a_node_is_left_to_them() -> None:
    with desk() as one:
        declare(one, *NODES)
        one.propose(SetDesired(node_id("n1"), "power", "on", "user:eve"))
        assert one.until(lambda: on(one) == ["n1", "n2", "n3", "n4"], within_s=30)
