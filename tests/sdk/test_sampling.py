"""What a module measures, from its declaration to the frames of its process."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.model.entity import EntityId
from haptera.model.parts import Requirement, Sampler
from haptera.model.reading import ITEM_BYTES_MAX, SERIES_MAX, VALUE_MAX, split_series
from haptera.sdk import (
    Attribute,
    HapteraError,
    Manifest,
    Measured,
    Module,
    Reading,
    Refused,
    item_name,
)
from haptera.sdk.sampling.rounds import measured_values
from tests.sdk.test_host import NOW, Device, a_call, failed, hosted

INLET = Reading("node", "temp.inlet", unit="°C", low=-60, high=200)
USED = Reading("node", "disk.used", unit="bytes", items_max=2, low=0)
PLATFORM = Attribute("node", "platform")


class Quick(Module[Any]):
    """A module whose samplers have no time to lose, whatever it says of them."""

    def manifest(self) -> Manifest:
        quick = self.samplers
        self.samplers = {name: replace(one, every_ms=10_000) for name, one in quick.items()}
        try:
            return super().manifest()
        finally:
            self.samplers = quick


def a_module(
    measure: Callable[[Any], Any], *, every_ms: int = 1, within_ms: int = 60_000, many: bool = False
) -> Module[Any]:
    module = Quick("trial", connect=lambda one: one, version="7")
    module.sampler(INLET, USED, many=many)(measure)
    for name, one in module.samplers.items():
        module.samplers[name] = replace(one, every_ms=every_ms, within_ms=within_ms)
    return module


def sampled(values: Mapping[str, float], id: int = 1) -> dict[str, Any]:
    return {"op": "sampled", "id": id, "at_ns": NOW, "values": dict(values)}


def test_a_sampler_is_declared_by_what_it_measures() -> None:
    module: Module[Any] = Module("trial", connect=lambda one: one, where={PLATFORM: "labnode"})

    @module.sampler(INLET, USED, every_s=30, within_s=2)
    def sensors(_: object) -> Measured:
        return {}

    only = Requirement("platform", ("labnode",))
    declared = Sampler("trial", "sensors", "node", (INLET, USED), (only,), 30_000, 2_000)
    assert module.manifest().samplers == (declared,)
    assert module.manifest().parts == ()


async def test_numbers_are_measured_again_and_again() -> None:
    async def sensors(_: object) -> Measured:
        return {INLET: 21.5, USED.series("/"): 7, USED.series("/tmp"): None}

    async with hosted(module_of=lambda _: a_module(sensors)) as daemon:
        await daemon.send(a_call(1, "sample", "sensors", deadline_ns=None))
        for _ in range(3):
            assert await daemon.next() == sampled({"disk.used[/]": 7.0, "temp.inlet": 21.5})


async def test_one_round_that_fails_ends_nothing() -> None:
    rounds = iter([Refused("no such sensor"), ZeroDivisionError("a gap"), None])

    def sensors(_: object) -> Measured:
        if (error := next(rounds, None)) is not None:
            raise error
        return {INLET: 21.5}

    async with hosted(module_of=lambda _: a_module(sensors)) as daemon:
        await daemon.send(a_call(1, "sample", "sensors", deadline_ns=None))
        assert await daemon.next() == failed(1, "no such sensor", refused=True)
        assert await daemon.next() == failed(1, "ZeroDivisionError: a gap", refused=False)
        assert await daemon.next() == sampled({"temp.inlet": 21.5})


async def test_a_sampler_that_hangs_harms_itself_alone() -> None:
    free = Event()

    def sensors(_: object) -> Measured:
        free.wait()
        return {}

    def module_of(_: Device) -> Module[Any]:
        module = a_module(sensors, within_ms=1)

        @module.serves(node.power).look(outcomes=(Power.OFF, Power.ON))
        def look(_: object) -> Power:
            return Power.ON

        return module

    async with hosted(module_of=module_of) as daemon:
        await daemon.send(a_call(1, "sample", "sensors", deadline_ns=None))
        text = "trial.sensors did not end within 0.001 s"
        assert await daemon.next() == failed(1, text, refused=True)
        text = "an earlier call was given up, but still runs and cannot be ended"
        assert await daemon.next() == failed(1, text, refused=True)
        await daemon.send({"op": "cancel", "id": 1}, a_call(2, "look", "look", deadline_ns=None))
        while (told := await daemon.next())["id"] == 1:
            pass
        assert told["value"] == "on"
        free.set()


async def test_a_sampler_of_many_is_asked_once_for_all() -> None:
    asked: list[set[str]] = []

    async def sensors(some: Mapping[EntityId, object]) -> Mapping[EntityId, Measured]:
        asked.append({one.name for one in some})
        return {one: {INLET: 20.0} for one in some}

    async with hosted(module_of=lambda _: a_module(sensors, every_ms=60_000, many=True)) as daemon:
        nodes = [{"kind": "node", "name": name, "node": name} for name in ("n1", "n2")]
        calls = [a_call(i, "sample", "sensors", entity=one) for i, one in enumerate(nodes)]
        await daemon.send(*calls)
        assert {(await daemon.next())["id"] for _ in calls} == {0, 1}
    assert asked == [{"n1", "n2"}]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -61.0, 201, 1e300])
def test_what_cannot_have_been_measured_is_left_out(value: float) -> None:
    sampler = Sampler("trial", "sensors", "node", (INLET, USED))

    assert measured_values(sampler, {INLET: value, USED.series("/"): 1}) == {"disk.used[/]": 1.0}


def test_what_is_not_declared_is_the_authors_error() -> None:
    sampler = Sampler("trial", "sensors", "node", (INLET,))

    with pytest.raises(HapteraError, match=r"measured 'disk.used\[/\]', which it does not declare"):
        measured_values(sampler, {USED.series("/"): 1.0})


def test_a_family_keeps_to_its_number_of_items_and_an_entity_to_its_number_of_series() -> None:
    sampler = Sampler("trial", "sensors", "node", (USED,))
    measured = {USED.series(name): 1.0 for name in ("/c", "/a", "/b")}
    assert list(measured_values(sampler, measured)) == ["disk.used[/a]", "disk.used[/b]"]

    wide = tuple(Reading("node", f"wide{chr(97 + n)}", items_max=64) for n in range(5))
    sampler = Sampler("trial", "sensors", "node", wide)
    measured = {one.series(str(item)): 1.0 for one in wide for item in range(64)}
    assert len(measured_values(sampler, measured)) == SERIES_MAX


@pytest.mark.parametrize(
    ("terms", "wrong"),
    [
        ({"name": "Temp"}, "is no name of a reading"),
        ({"name": "a" * 41}, "is no name of a reading"),
        ({"name": "temp", "unit": "°" * 7}, "too long a unit"),
        ({"name": "temp", "items_max": 65}, "has 65 items"),
        ({"name": "temp", "low": 1, "high": 1}, "limits that cannot be"),
        ({"name": "temp", "high": float("nan")}, "limits that cannot be"),
        ({"name": "temp", "high": 2 * VALUE_MAX}, "limits that cannot be"),
    ],
)
def test_a_reading_that_cannot_be_is_refused(terms: dict[str, Any], wrong: str) -> None:
    with pytest.raises(HapteraError, match=wrong):
        Reading("node", **terms)


@pytest.mark.parametrize("text", ["", "/", "/a b", "ü]", "x" * 99, 'a"},{'])
def test_whatever_an_item_is_called_its_series_has_a_name(text: str) -> None:
    assert split_series(USED.series(text)) == ("disk.used", item_name(text))
    assert len(item_name(text)) <= ITEM_BYTES_MAX


def test_only_a_family_has_items() -> None:
    with pytest.raises(HapteraError, match="is a family"):
        USED.series()
    with pytest.raises(HapteraError, match="is no family"):
        INLET.series("x")


def test_readings_of_two_kinds_need_two_samplers() -> None:
    module: Module[Any] = Module("trial", connect=lambda one: one)

    with pytest.raises(HapteraError, match="of one kind"):
        module.sampler(INLET, Reading("service", "memory"))(lambda _: {})


def test_a_sampler_measures_once_a_second_at_most() -> None:
    module: Module[Any] = Module("trial", connect=lambda one: one)
    module.sampler(INLET, every_s=0.5)(lambda _: {})

    with pytest.raises(HapteraError, match=r"`every` of .* is 0.5 s"):
        module.manifest()


def test_the_names_of_looks_and_samplers_are_one_set() -> None:
    async def look(_: object) -> Measured:
        return {}

    module: Module[Any] = Module("trial", connect=lambda one: one)
    module.sampler(INLET)(look)

    with pytest.raises(HapteraError, match="is declared twice"):
        module.sampler(USED)(look)
    assert asyncio.iscoroutinefunction(look)
