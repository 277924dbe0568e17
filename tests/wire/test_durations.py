"""Durations of neighbours: each has a bound, for what holds so long may hold up a whole cluster."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

import haptera.wire
from haptera.daemon.tree.below import SubtreeReport
from haptera.model.answers.views import EntityView
from haptera.model.entity import EntityId
from haptera.model.events import ReportAnswer
from haptera.model.messages import LATE_MS_MAX, Ask, RoomAsk
from haptera.model.walltime import AGE_MS_MAX
from haptera.runtime.network.peer_messages import Answer, Request

UNITS = ("_ms", "_s", "_ns")


def told() -> Iterator[Any]:
    """All that is decoded of what a neighbour sends."""
    for one in pkgutil.iter_modules(haptera.wire.__path__):
        module = importlib.import_module(f"haptera.wire.{one.name}")
        for value in vars(module).values():
            if isinstance(value, msgspec.msgpack.Decoder):
                yield value.type
    yield from (SubtreeReport, ReportAnswer, Request, Answer)


def durations(kind: Any, at: str, seen: set[type]) -> Iterator[tuple[str, Any]]:
    """The numbers in a type that are called as durations are, each with its place."""
    match kind:
        case inspect.StructType(cls=cls) if cls in seen:
            return
        case inspect.StructType(cls=cls, fields=fields):
            seen.add(cls)
            inner = [(one.type, f"{cls.__name__}.{one.name}") for one in fields]
        case inspect.IntType() | inspect.FloatType() if at.endswith(UNITS):
            yield at, kind
            return
        case _:
            names = ("type", "types", "item_type", "item_types", "value_type")
            held = [getattr(kind, name, ()) for name in names]
            inner = [
                (one, at) for some in held for one in (some if isinstance(some, tuple) else (some,))
            ]
    for one, place in inner:
        yield from durations(one, place, seen)


def test_each_duration_that_a_neighbour_sends_has_a_bound() -> None:
    seen = {EntityView}  # it is shown to people, and nothing is computed with it
    found = [one for kind in told() for one in durations(inspect.type_info(kind), "", seen)]
    assert {"_Ask.late_ms", "_RoomAsk.late_ms", "RoomAsk.late_ms"} <= {at for at, _ in found}
    unbounded = [at for at, one in found if one.ge is None or one.le is None]
    assert unbounded == []


def test_no_ask_can_be_late_for_longer_than_any_step_is() -> None:
    """Not by the wire, nor between parents, nor from a file: there is no such value."""
    entity = EntityId("service", "web", "n1")
    for ask in (Ask("1", "", AGE_MS_MAX), RoomAsk("1", entity, AGE_MS_MAX)):
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(ask), type=type(ask))
        assert (ask.late_ms, again.late_ms) == (LATE_MS_MAX, LATE_MS_MAX)
