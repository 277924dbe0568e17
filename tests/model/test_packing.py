"""An entity's state as words: nothing lost, nothing made up, and the same number on both sides."""

from dataclasses import replace
from enum import StrEnum
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.kinds import KINDS, node
from haptera.kinds.node import Power
from haptera.model.declared.packing import (
    Held,
    Unpacked,
    kind_digest,
    layout_of,
    pack,
    schema_digest,
    unpack,
)
from haptera.model.declared.schema import Kind, Variable
from haptera.model.facts import Method
from haptera.model.parts import ANY, Change, Look, Part, Step

NODE = layout_of(node.kind)
NAMES = ("agent", "bootable", "booted", "busy", "netboot", "power", "power_profile", "work")
LOOK = Look("bmc", "power", "node", "power", ("off", "on"))
STEP = Step("bmc", "on", "node", (Change("power", (ANY,), "on"),), disruptive=True)


def kind_of(sizes: list[int], gap: int = 2) -> Kind:
    """A kind whose variables have so many values, their numbers with gaps."""
    variables: list[Variable[Any]] = []
    for at, size in enumerate(sizes):
        values: Any = StrEnum("V", {f"V{n}": f"v{n}" for n in range(size)})
        numbers = {value: n * gap for n, value in enumerate(values)}
        variables.append(Variable("big", f"x{at:02}", values, numbers))
    return Kind("big", tuple(variables))


def states(kind: Kind) -> st.SearchStrategy[dict[str, Held]]:
    """Any state of a kind, in which unknown variables are absent."""
    return st.fixed_dictionaries(
        {},
        optional={
            variable.name: st.tuples(
                st.sampled_from([str(value) for value in list(variable.numbers)[1:]]),
                st.booleans(),
                st.sampled_from(
                    (Method.READ, Method.INFERRED)
                ),  # what others report goes to no agent
            )
            for variable in kind.variables
        },
    )


def test_a_node_is_packed_into_these_very_bits() -> None:
    # By name: agent (1 bit), bootable, booted, busy, netboot, power (2); above each remembered,
    # then inferred.
    state = {
        "agent": ("up", True, Method.READ),
        "bootable": ("current", False, Method.READ),
        "booted": ("stale", False, Method.READ),
        "busy": ("busy", False, Method.READ),
        "netboot": ("closed", False, Method.READ),
        "power": ("hung", False, Method.INFERRED),
    }

    assert pack(NODE, state) == (0b11_11_01_01_01_10_01_01_01_10_00_1,)
    assert unpack(NODE, (0b11_11_01_01_01_10_01_01_01_10_00_1,)) == Unpacked(state, ())


@settings(max_examples=60)
@given(st.data(), st.lists(st.integers(2, 9), min_size=1, max_size=20))
def test_what_is_packed_is_what_is_unpacked(data: st.DataObject, sizes: list[int]) -> None:
    kind = kind_of(sizes)
    layout = layout_of(kind)
    state = data.draw(states(kind))

    words = pack(layout, state)

    assert len(words) == layout.words
    assert all(0 <= word < 1 << 64 for word in words)
    assert unpack(layout, words) == Unpacked(state, ())


def test_every_bit_of_four_words_can_be_used() -> None:
    kind = kind_of([3] * 12, gap=200_000)  # 21 bits each: 252 of 256, some across two words
    layout = layout_of(kind)
    state: dict[str, Held] = {field.name: ("v2", False, Method.INFERRED) for field in layout.fields}

    assert layout.words == 4
    assert unpack(layout, pack(layout, state)) == Unpacked(state, ())


def test_all_words_of_a_node_are_read_or_told() -> None:
    for agent, busy, power in product(range(8), range(16), range(16)):
        read = unpack(NODE, (agent | busy << 11 | power << 19,))
        for name, cell, bits in (("agent", agent, 1), ("busy", busy, 2), ("power", power, 2)):
            number = cell & ((1 << bits) - 1)
            bad = (number == 0 and cell != 0) or (name == "busy" and number == 3)
            assert (name in read.unread) == bad
            assert (name in read.values) == (number != 0 and not bad)


def test_words_of_another_length_are_not_read_at_all() -> None:
    assert unpack(NODE, ()) == Unpacked({}, NAMES)
    assert unpack(NODE, (1, 0)) == Unpacked({}, NAMES)


def test_unknown_is_packed_as_absent() -> None:
    assert pack(NODE, {"power": (Power.UNKNOWN, True, Method.READ)}) == pack(NODE, {}) == (0,)


def test_what_is_not_of_the_kind_cannot_be_packed() -> None:
    with pytest.raises(ValueError, match="power has no value 'lukewarm'"):
        pack(NODE, {"power": ("lukewarm", True, Method.READ)})
    with pytest.raises(ValueError, match="not of this kind: colour"):
        pack(NODE, {"colour": ("red", True, Method.READ)})


@given(st.permutations(list(KINDS.values())), st.permutations([LOOK, STEP]), st.randoms())
def test_order_does_not_change_the_schema_digest(
    kinds: list[Kind], parts: list[Part], rng: Any
) -> None:
    shuffled = []
    for kind in kinds:
        variables = list(kind.variables)
        rng.shuffle(variables)
        shuffled.append(replace(kind, variables=tuple(variables)))
        assert layout_of(shuffled[-1]) == layout_of(kind)

    assert schema_digest(shuffled, [*parts, LOOK]) == schema_digest(KINDS.values(), [LOOK, STEP])


def test_a_change_of_a_variable_concerns_the_kinds_that_have_or_borrow_it() -> None:
    agent = replace(node.agent, numbers={one: 2 * at for one, at in node.agent.numbers.items()})

    def renumbered(variables: tuple[Variable[Any], ...]) -> tuple[Variable[Any], ...]:
        return tuple(agent if one is node.agent else one for one in variables)

    others = [
        replace(one, variables=renumbered(one.variables), borrows=renumbered(one.borrows))
        for one in KINDS.values()
    ]
    changed = {one.name for one in others if kind_digest(one, ()) != digest(one.name)}
    assert changed == {"node"} | {one.name for one in KINDS.values() if node.agent in one.borrows}
    assert "service" in changed


def digest(kind: str, *parts: Part) -> int:
    return kind_digest(KINDS[kind], parts)


def test_whatever_both_sides_must_agree_on_of_a_part_changes_the_digest_of_its_kind() -> None:
    assert digest("node", STEP, LOOK) == digest("node", LOOK, STEP)
    parts = [(), (STEP,), (LOOK,), (LOOK, STEP), (LOOK, replace(STEP, cost=2))]
    assert len({digest("node", *one) for one in parts}) == len(parts)


def test_whatever_both_sides_must_agree_on_changes_the_schema_digest() -> None:
    power = Variable(
        "node", "power", Power, {Power.UNKNOWN: 0, Power.OFF: 2, Power.ON: 1, Power.HUNG: 3}
    )
    others: list[tuple[list[Kind], list[Part]]] = [
        ([node.kind], [LOOK, STEP]),
        ([replace(node.kind, variables=(node.agent, node.busy, power))], [LOOK, STEP]),
        ([replace(node.kind, attributes=node.kind.attributes[1:])], [LOOK, STEP]),
        ([replace(node.kind, borrows=(KINDS["service"].variables[0],))], [LOOK, STEP]),
        ([node.kind], [LOOK]),
        ([node.kind], [replace(LOOK, cost=2), STEP]),
        ([node.kind], [LOOK, replace(STEP, late_ms=1)]),
        ([node.kind], [LOOK, replace(STEP, changes=(Change("power", ("off",), "on"),))]),
    ]

    assert len({schema_digest(kinds, parts) for kinds, parts in others}) == len(others)
