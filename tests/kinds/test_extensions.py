"""What an extension may add to nodes, and how much of it one node has room for."""

from enum import StrEnum

import pytest

from haptera.kinds import KINDS, node
from haptera.kinds.extensions import TAKEN
from haptera.model.declared.schema import Attribute, Extension, Variable, extend
from haptera.model.declared.told_bytes import check_size
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError, LimitError

BIG = tuple(Attribute("node", f"big.text{number}", size_bytes_max=200) for number in range(9))
N01 = node_id("n01")
LARGE = extend(node.kind, [Extension("big", attributes=BIG)])


class Lan(StrEnum):
    UNKNOWN = "unknown"
    UP = "up"


LAN = Variable("node", "ipmi.lan", Lan, {Lan.UNKNOWN: 0, Lan.UP: 1})


@pytest.mark.parametrize(
    "attribute",
    [
        Attribute("node", "address"),
        Attribute("node", "bmc.address"),
        Attribute("node", "ipmi.a.b"),
        Attribute("node", "ipmi."),
        Attribute("service", "ipmi.address"),
    ],
)
def test_an_extension_adds_under_its_own_name_only(attribute: Attribute) -> None:
    with pytest.raises(HapteraError, match="of kind node"):
        Extension("ipmi", attributes=(attribute,))


def test_no_extension_is_called_as_a_kind() -> None:
    """Else `pool.size` in a selector would have two meanings."""
    assert KINDS.bundled.keys() <= TAKEN


def test_an_extended_kind_has_all_that_it_had_and_more() -> None:
    extended = extend(node.kind, [Extension("ipmi", (LAN,), (Attribute("node", "ipmi.user"),))])
    assert {*extended.names} == {*node.kind.names, "ipmi.lan", "ipmi.user"}
    assert extended.variable("ipmi.lan") is LAN


def test_two_extensions_that_add_the_same_are_refused() -> None:
    with pytest.raises(HapteraError, match="declares twice"):
        extend(node.kind, [Extension("ipmi", (LAN,)), Extension("ipmi", (LAN,))])


def test_more_may_be_declared_than_one_node_has_room_for() -> None:
    few = {one.name: "x" * 200 for one in BIG[:4]}
    check_size(LARGE, N01, {}, few)
    with pytest.raises(LimitError) as refused:
        check_size(LARGE, N01, {"minos": "m" * 40}, {one.name: "x" * 200 for one in BIG})
    assert str(refused.value) == (
        "node:n01 takes 1992 bytes, 1035 at most: big.text0 212, big.text1 212, big.text2 212,"
        " big.text3 212, big.text4 212, big.text5 212, the rest 720"
        " (make some of it shorter, or leave it out)"
    )
