"""Which entities are measured by whom, and what of it is taken: beside a real engine."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.selecting import means
from haptera.core.state.side import Side
from haptera.daemon.samples.sample_board import FRESH_S, SampleBoard
from haptera.daemon.samples.sampling import Sampling
from haptera.kinds import KINDS
from haptera.kinds.rules.rule import parse_rule
from haptera.model.changes import Declare, Stored, StoredEntity
from haptera.model.effects import Call, Cancel, Start, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Exited, Proposed, Ready, Written
from haptera.model.parts import Context, Manifest, Requirement, Sampler
from haptera.model.reading import SERIES_MAX, Reading, Series
from haptera.model.samples import Measurement, SampleBatch
from haptera.runtime import clock
from haptera.runtime.processes.module_frames import Sampled, sampled_of
from haptera.runtime.samples.limits import SampleLimits
from haptera.runtime.samples.sample_store import SampleStore
from haptera.selectors.selector import parse_selector
from haptera.selectors.subscription import parse_wanted

INLET = Reading("node", "temp.inlet", unit="°C", low=-60, high=200)
USED = Reading("node", "disk.used", unit="bytes", items_max=2, low=0)
N1, N2, N3 = map(node_id, ("n1", "n2", "n3"))
WALL = 1_700_000_000.0


def manifest(context: Context, *, every_ms: int = 10_000) -> Manifest:
    only = (Requirement("platform", ("real",)),)
    sampler = Sampler("meter", "sensors", "node", (INLET, USED), only, every_ms)
    return Manifest("meter", "1", context, (), (), samplers=(sampler,))


def engine_of(context: Context = Context.PARENT, node: str | None = None) -> Engine:
    nodes = {N1: {"platform": "real", "rack": "r1"}, N2: {"platform": "paper"}}
    stored = Stored(
        1, 1, [StoredEntity(one, its, "site", {}, 1) for one, its in nodes.items()], [], {}
    )
    side = Side(context, node, 1, "boot", 5 * S)
    return Engine(side, Catalog(KINDS, [manifest(context)]), stored, 0, clock.now_ns())


@dataclass
class Meters:
    """The calls that a daemon gets, and what is taken of their rounds."""

    engine: Engine
    asked: list[Call | Cancel] = field(default_factory=list)
    taken: list[tuple[EntityId, dict[Series, float]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sampling = Sampling(self.engine, lambda one, _, what: self.taken.append((one, what)))
        self.sampling.ask(self.asked.append, self.asked.append)
        self.deliver = self.sampling.beside(lambda events: None)

    @property
    def measured(self) -> list[tuple[EntityId, int]]:
        """Who is measured by which process now."""
        ended = {one.call for one in self.asked if isinstance(one, Cancel)}
        calls = [one for one in self.asked if isinstance(one, Call) and one.id not in ended]
        return [(one.entity, one.process) for one in calls]

    def settle(self) -> None:
        self.sampling.settle()

    def tell(self, values: dict[str, float], age_ns: int = 0, call: int = 0) -> None:
        calls = [one for one in self.asked if isinstance(one, Call)]
        self.sampling.sampled(Sampled(calls[call].id, clock.now_ns() - age_ns, values))


def test_a_module_with_samplers_is_started_though_nothing_is_desired() -> None:
    effects = engine_of().handle([], S)

    assert [one.module for one in effects if isinstance(one, Start)] == ["meter"]


def test_each_entity_that_a_sampler_is_for_is_measured_once_its_module_serves() -> None:
    meters = Meters(engine_of())
    meters.deliver([Ready("meter")])
    meters.settle()

    (call,) = meters.asked
    assert isinstance(call, Call)
    assert (call.work, call.part, call.entity, call.process) == (Work.SAMPLE, "sensors", N1, 1)
    assert call.attributes == {"platform": "real", "rack": "r1"}
    assert call.id >= 1 << 48


def test_entities_that_come_and_go_and_change_are_followed() -> None:
    engine = engine_of()
    meters = Meters(engine)

    def declare(entity: EntityId, attributes: dict[str, str], ticket: int) -> None:
        now = clock.now_ns()
        engine.handle([Proposed(ticket, (Declare(entity, attributes, "site"),))], now)
        engine.handle([Written(ticket, ticket + 1)], now)
        meters.sampling.changed([entity])
        meters.settle()

    meters.deliver([Ready("meter")])
    meters.settle()
    declare(N2, {"platform": "real"}, 1)
    assert meters.measured == [(N1, 1), (N2, 1)]
    declare(N1, {"platform": "real", "rack": "r2"}, 2)
    assert meters.measured == [(N2, 1), (N1, 1)]
    declare(N2, {"platform": "paper"}, 3)
    assert meters.measured == [(N1, 1)]


def test_a_process_that_ends_measures_nothing_and_its_successor_all() -> None:
    meters = Meters(engine_of())
    meters.deliver([Ready("meter"), Exited("meter", "died", 1), Ready("meter", 2)])
    meters.settle()
    assert meters.measured == [(N1, 2)]

    meters.tell({"temp.inlet": 20.0})
    meters.deliver([Exited("meter", "died", 2)])
    meters.tell({"temp.inlet": 21.0})
    assert meters.taken == [(N1, {"temp.inlet": 20.0})]


def test_an_agent_measures_its_own_node_alone() -> None:
    meters = Meters(engine_of(Context.SELF, "n1"))
    meters.deliver([Ready("meter")])
    meters.settle()

    assert meters.measured == [(N1, 1)]


@pytest.mark.parametrize(
    ("age_ns", "values", "dropped"),
    [
        (-S, {"temp.inlet": 20.0}, {"out of time": 1}),
        (61 * S, {"temp.inlet": 20.0}, {"out of time": 1}),
        (0, {"temp.outlet": 20.0}, {"not declared, or impossible": 1}),
        (0, {"temp.inlet": float("nan")}, {"not declared, or impossible": 1}),
        (0, {"temp.inlet": 201.0}, {"not declared, or impossible": 1}),
        (0, {f"disk.used[{n}]": 1.0 for n in range(4)}, {"not declared, or impossible": 2}),
    ],
)
def test_what_cannot_be_is_met_where_it_comes_in(
    age_ns: int, values: dict[str, float], dropped: dict[str, int]
) -> None:
    meters = Meters(engine_of())
    meters.deliver([Ready("meter")])
    meters.settle()
    meters.tell(values, age_ns)

    assert +meters.sampling.counts == dropped
    assert sum(len(what) for _, what in meters.taken) == len(values) - sum(dropped.values())


def test_rounds_that_come_too_often_are_dropped() -> None:
    meters = Meters(engine_of())
    meters.deliver([Ready("meter")])
    meters.settle()
    for _ in range(10):
        meters.tell({"temp.inlet": 20.0})

    assert meters.taken == [(N1, {"temp.inlet": 20.0})]
    assert +meters.sampling.counts == {"too often": 9}


def test_what_fails_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    meters = Meters(engine_of())
    meters.deliver([Ready("meter")])
    meters.settle()
    (call,) = meters.asked
    assert isinstance(call, Call)
    for _ in range(3):
        meters.sampling.sampled(Sampled(call.id, failure="no such sensor"))

    assert caplog.messages == ["meter.sensors: no such sensor"]
    assert meters.sampling.counts == {"round failed": 3}


@pytest.mark.parametrize("values", [{"a": "b"}, {1: 1.0}, {"a": None}, {"a": [1]}])
def test_what_is_no_number_breaks_the_protocol(values: dict[object, object]) -> None:
    with pytest.raises(ValueError, match="no number"):
        sampled_of({"op": "sampled", "id": 1, "at_ns": 0, "values": values})


@pytest.fixture
def board(tmp_path: Path) -> Iterator[SampleBoard]:
    store = SampleStore(tmp_path, SampleLimits(), lambda: WALL)
    yield SampleBoard(engine_of(Context.SELF, "n1"), store, lambda: WALL)
    store.close()


def measurement(values: dict[str, float], *, name: str = "n1", age_ms: int = 0) -> Measurement:
    return Measurement("node", name, age_ms, values)


def test_what_a_node_tells_is_kept_and_handed_on(board: SampleBoard) -> None:
    heard: list[SampleBatch] = []
    end = board.subscribe(heard.append)
    board.measured("n1", [measurement({"temp.inlet": 20.0}, age_ms=500)])
    end()
    board.measured("n1", [measurement({"temp.inlet": 21.0})])

    assert heard == [SampleBatch(N1, WALL - 0.5, {Series("temp.inlet"): 20.0})]
    assert board.last(N1)[Series("temp.inlet")].value == 21.0
    window = asyncio.run(board.window(N1, Series("temp.inlet"), WALL - 9, WALL + 1))
    assert window == [(WALL - 0.5, 20.0), (WALL, 21.0)]


def test_a_node_cannot_speak_for_another(board: SampleBoard) -> None:
    board.measured("n1", [measurement({"temp.inlet": 99.0}, name="n2")])
    board.measured("n3", [measurement({"temp.inlet": 99.0}, name="n1")])

    assert list(board.last(N1)) == ["temp.inlet"]
    assert (board.last(N2), board.last(N3)) == ({}, {})
    assert board.counts["of no entity"] == 1


@pytest.mark.parametrize(
    "one",
    [
        measurement({"temp.inlet": float("nan")}),
        measurement({"temp.inlet": float("-inf")}),
        measurement({"temp.inlet": 1e6}),
        measurement({"temp.inlet[x]": 1.0}),
        measurement({"disk.used": 1.0}),
        measurement({"other": 1.0}),
        measurement({'a"b': 1.0}),
        measurement({"temp.inlet": 1.0}, age_ms=1 << 40),
        Measurement("nokind", "n1", 0, {"temp.inlet": 1.0}),
    ],
)
def test_a_node_that_was_turned_writes_nothing_that_cannot_be(
    board: SampleBoard, one: Measurement
) -> None:
    board.measured("n1", [one, one])

    assert board.last(N1) == {}
    assert sum(board.counts.values()) == 2


def test_what_one_entity_may_have_is_bounded_though_its_items_change(board: SampleBoard) -> None:
    heard: list[SampleBatch] = []
    board.subscribe(heard.append)
    for number in range(2 * SERIES_MAX):
        board.measured("n1", [measurement({f"disk.used[{number}]": 1.0, "temp.inlet": 20.0})])

    assert len(board.last(N1)) == SERIES_MAX
    # Nor is it handed on, to be kept elsewhere; what was there before goes on.
    assert {one for batch in heard for one in batch.values} == board.last(N1).keys()
    assert heard[-1].values == {Series("temp.inlet"): 20.0}
    assert board.counts["too many of one entity"] == SERIES_MAX + 1


def test_a_listener_that_fails_keeps_nothing_from_the_others(board: SampleBoard) -> None:
    heard: list[SampleBatch] = []

    def fails(batch: SampleBatch) -> None:
        raise ZeroDivisionError

    board.subscribe(fails)
    board.subscribe(heard.append)
    board.measured("n1", [measurement({"temp.inlet": 20.0}), measurement({"temp.inlet": 21.0})])

    assert [batch.values["temp.inlet"] for batch in heard] == [20.0, 21.0]


def test_what_is_old_is_not_told_as_how_things_are(tmp_path: Path) -> None:
    now = [WALL]
    store = SampleStore(tmp_path, SampleLimits(), lambda: now[0])
    board = SampleBoard(engine_of(), store, lambda: now[0])
    board.add(N1, 0.0, {Series("temp.inlet"): 20.0})
    now[0] += FRESH_S + 1

    assert board.last(N1) == {}
    assert list(board.all_last()) == []
    store.close()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("temp.inlet>35", ["n1"]),
        ("temp.inlet>=36 and node:n1", ["n1"]),
        ("temp.inlet<36", ["n2"]),
        ("disk.used[/]>1", []),
        ("not temp.inlet>35", ["n2"]),
    ],
)
def test_a_selector_goes_by_the_last_number_while_it_is_fresh(
    tmp_path: Path, text: str, meant: list[str]
) -> None:
    now = [WALL]
    engine = engine_of()
    store = SampleStore(tmp_path, SampleLimits(), lambda: now[0])
    board = SampleBoard(engine, store, lambda: now[0])
    engine.table.measured = board.measured_last
    board.add(N1, 0.0, {Series("temp.inlet"): 36.0})
    board.add(N2, 0.0, {Series("temp.inlet"): 20.0})

    def selected() -> list[str]:
        chosen = parse_selector(text)
        return [one.name for one in (N1, N2) if means(engine.table, chosen, one, S)]

    assert selected() == meant
    now[0] += FRESH_S + 1
    assert selected() == (["n1", "n2"] if text.startswith("not") else [])
    store.close()


@pytest.mark.parametrize("read", [parse_rule, lambda text: parse_wanted(None, None, text)])
def test_rules_and_subscriptions_go_by_no_number(read: Callable[[str], object]) -> None:
    with pytest.raises(HapteraError, match=r"temp\.inlet"):
        read("temp.inlet>35")
