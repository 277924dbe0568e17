"""Desired state has owners: who may change what, and who stands in the way."""

import pytest

from haptera.core.desired.ownership import declare, desire, undeclare
from haptera.kinds import KINDS, node
from haptera.model.changes import Declare, Desired, SetDesired, Undeclare, UnsetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import ConflictError, HapteraError

N1, WEB = node_id("n1"), EntityId("service", "web", "n1")
ME = "controller:keep-on"


def desired(held: dict[str, Desired], **patch: str | None) -> list[object]:
    return list(desire(node.kind, N1, held, patch, ME))


def test_a_value_is_set_changed_and_unset() -> None:
    mine = {"power": Desired("on", ME)}
    assert desired({}, power="on") == [SetDesired(N1, "power", "on", ME)]
    assert desired(mine, power="off") == [SetDesired(N1, "power", "off", ME)]
    assert desired(mine, power=None) == [UnsetDesired(N1, "power")]
    assert desired(mine, power="on") == desired({}, power=None) == []


@pytest.mark.parametrize("value", ["on", "off", None])
def test_anothers_value_is_not_touched_and_the_owner_named(value: str | None) -> None:
    with pytest.raises(ConflictError, match="power of node:n1 belongs to site, who wants on"):
        desired({"power": Desired("on", "site")}, power=value)


def test_a_value_that_cannot_be_is_refused() -> None:
    with pytest.raises(HapteraError, match=r"node\.power cannot be 'up'"):
        desired({}, power="up")


def declared(held: dict[str, str] | None, owner: str | None, **attributes: str) -> list[object]:
    return list(declare(KINDS, N1, held, attributes, (owner, ME)))


def test_an_entity_is_declared_by_one_owner() -> None:
    assert declared(None, None, rack="r1") == [Declare(N1, {"rack": "r1"}, ME)]
    assert declared({"rack": "r1"}, ME, rack="r1") == []
    assert declared({"rack": "r1"}, ME) == [Declare(N1, {}, ME)]
    with pytest.raises(ConflictError, match="node:n1 was declared by site"):
        declared({}, "site")
    with pytest.raises(HapteraError, match="a node has no attribute 'rac'"):
        declared(None, None, rac="r1")
    with pytest.raises(HapteraError, match="there is no kind 'nod'"):
        list(declare(KINDS, EntityId("nod", "n1", None), None, {}, (None, ME)))


def gone(owner: str | None, held: dict[str, Desired], *on_it: EntityId) -> list[object]:
    return list(undeclare(N1, held, on_it, (owner, ME)))


def test_what_is_ones_own_alone_can_go() -> None:
    assert gone(ME, {"power": Desired("on", ME)}) == [Undeclare(N1)]
    assert gone(None, {}) == []
    with pytest.raises(ConflictError, match="also belongs to"):
        gone("site", {})
    with pytest.raises(ConflictError, match="have user:eve release it"):
        gone(ME, {"power": Desired("on", "user:eve")})
    with pytest.raises(ConflictError, match="service:web@n1 is on node:n1"):
        gone(ME, {}, WEB)
