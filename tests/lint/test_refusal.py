"""Parts with which knowledge cannot hold are not planned with, and the error says why."""

from collections.abc import Iterable

import pytest

from haptera.core.modules.catalog import Catalog
from haptera.kinds import KINDS
from haptera.model.errors import HapteraError
from haptera.model.parts import Change, Context, Look, Manifest, Part, Requirement, Step

POWER = Look("m", "look_power", "node", "power", ("off", "on"))
ON = Requirement("power", ("on",))
OFF = Requirement("power", ("off",))
UP = Requirement("agent", ("up",))
AGENT = Look("m", "look_agent", "node", "agent", ("up",), (ON,))


BUSY = Requirement("busy", ("busy",))
TURN_ON = Change("power", ("off",), "on")


def platform(name: str) -> Requirement:
    return Requirement("platform", (name,))


def step(name: str, *changes: Change, requires: Iterable[Requirement] = ()) -> Step:
    return Step("m", name, "node", changes, tuple(requires))


def manifest(*parts: Part) -> Manifest:
    looks = tuple(part for part in parts if isinstance(part, Look))
    steps = tuple(part for part in parts if isinstance(part, Step))
    return Manifest("m", "1", Context.PARENT, looks, steps)


def busy(*requires: Requirement) -> Look:
    return Look("m", "look_busy", "node", "busy", ("free", "busy"), requires)


FREE = Change("busy", ("busy",), "free")
CASES: dict[str, tuple[list[Part], str]] = {
    "a look that can never be open": (
        [POWER, AGENT, busy(UP, OFF)],
        "m.look_busy: no knowable state meets its conditions: it requires agent=up and requires"
        " power=off (remove or correct one of these conditions)",
    ),
    "a step that can never be taken": (
        [POWER, AGENT, busy(), step("reset", FREE, requires=[UP, OFF])],
        "m.reset: no knowable state meets its conditions: it requires agent=up and requires"
        " power=off (remove or correct one of these conditions)",
    ),
    "a step that starts where its conditions do not hold": (
        [POWER, AGENT, busy(ON), step("boot", TURN_ON, requires=[BUSY])],
        "m.boot: no knowable state meets its conditions: it requires busy=busy and starts from"
        " power=off (remove or correct one of these conditions)",
    ),
    "a step for entities that there cannot be": (
        [POWER, step("boot", TURN_ON, requires=[platform("a"), platform("b")])],
        "m.boot: no entity can have the attributes that it needs: it requires platform=a and"
        " requires platform=b (remove one of these conditions, or split it into two parts)",
    ),
    "a result that is forgotten at once": (
        [POWER, AGENT, busy(ON), step("clear", Change("power", ("on",), "off"), FREE)],
        "m.clear: its result busy=free is always forgotten at once: m.look_busy requires power=on"
        " (do not change what the look requires, or declare free as only expected)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_knowledge_that_cannot_hold_is_refused(name: str) -> None:
    parts, told = CASES[name]
    with pytest.raises(HapteraError) as refused:
        Catalog(KINDS, [manifest(*parts)])
    assert str(refused.value) == told


def test_what_clashes_is_told_of_the_class_in_which_the_most_can_be_known() -> None:
    power = Look("m", "look_power", "node", "power", ("off", "on"), (platform("a"),))
    with pytest.raises(HapteraError, match="requires agent=up and requires power=off"):
        Catalog(KINDS, [manifest(power, busy(UP, OFF))])


def test_what_holds_in_one_class_or_one_state_is_not_refused() -> None:
    for_a = Look("m", "look_a", "node", "busy", ("free",), (platform("a"), UP))
    free = step("free", Change("busy", ("*",), "free"))
    Catalog(KINDS, [manifest(POWER, AGENT, for_a, free)])


def test_a_module_is_not_taken_over_by_one_that_cannot_be_planned_with() -> None:
    catalog = Catalog(KINDS, [manifest(POWER)])
    wrong = step("reset", Change("busy", ("*",), "free"), requires=[ON, OFF])
    with pytest.raises(HapteraError, match="power=on and requires power=off"):
        catalog.replace(manifest(POWER, wrong))
    assert catalog.manifests["m"] == manifest(POWER)
