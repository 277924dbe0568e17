"""What a group's controller would do is told before anything is written."""

from haptera.daemon.backend.follow_ups import OWNER, follow_ups
from haptera.model.answers.views import Condition, DesiredView, EntityView
from haptera.model.changes import Declare, SetDesired, Undeclare
from haptera.model.entity import EntityId, node_id

LEDGER = EntityId("group", "ledger", None)


def a_view(entity: EntityId, attributes: dict[str, str], **desired: str | int) -> EntityView:
    owner = OWNER if entity.kind == "replica" else "site"
    return EntityView(
        entity=str(entity),
        kind=entity.kind,
        name=entity.name,
        node=entity.node,
        revision=1,
        attributes=attributes,
        desired={name: DesiredView(value, owner) for name, value in desired.items()},
        observed={},
        condition=Condition.CONVERGED,
        chain=[],
        since_ms=0,
    )


def views(*some: EntityView) -> dict[str, EntityView]:
    nodes = [a_view(node_id(f"n{one}"), {"rack": f"r{one}"}, power="on") for one in (1, 2, 3)]
    return {view.entity: view for view in (*nodes, *some)}


def replica(rank: int, node: str) -> EntityView:
    entity = EntityId("replica", f"ledger.{rank}", node)
    return a_view(entity, {}, run="running", command="serve", placement=1)


def test_a_node_that_is_to_go_off_gives_its_replica_to_another() -> None:
    group = a_view(LEDGER, {}, command="serve", replicas=2, apart="rack")
    there = views(group, replica(0, "n1"), replica(1, "n2"))
    new = EntityId("replica", "ledger.0", "n3")

    found = follow_ups(there, [SetDesired(node_id("n1"), "power", "off", "site")], 0.0)

    assert found == (
        Declare(new, {"placed": "shares no rack with n2"}, OWNER),
        SetDesired(new, "command", "serve", OWNER),
        SetDesired(new, "placement", 2, OWNER),
        SetDesired(new, "run", "running", OWNER),
        Undeclare(EntityId("replica", "ledger.0", "n1")),
    )


def test_a_group_that_is_not_there_yet_is_placed() -> None:
    changes = [
        Declare(LEDGER, {}, "site"),
        SetDesired(LEDGER, "command", "serve", "site"),
        SetDesired(LEDGER, "replicas", 1, "site"),
    ]

    found = follow_ups(views(), changes, 0.0)

    assert [one.entity for one in found if isinstance(one, Declare)] == [
        EntityId("replica", "ledger.0", "n1")
    ]


def test_without_a_group_nothing_follows() -> None:
    assert follow_ups(views(), [SetDesired(node_id("n1"), "power", "off", "site")], 0.0) == ()
