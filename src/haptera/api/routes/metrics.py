"""The route that Prometheus reads: `GET /metrics`, in its text format, with its conventions."""

import contextlib
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

import haptera
from haptera.api.requests.endpoint import Caller, Handler
from haptera.api.requests.meters import Meters
from haptera.core.figures import Figures
from haptera.model.errors import HapteraError
from haptera.queue.demand import demand
from haptera.queue.duty import DutyState
from haptera.queue.job import JobState
from haptera.queue.queue import JobQueue
from haptera.rest import endpoints

_NS_PER_S: Final = 1e9

# The values of the labels, and the number that they stand by.
Samples = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class Tallies:
    """What the runtime counts as it happens.

    Datagrams by why they were refused or not sent, enrolments by what came of them, requests of
    agents over TLS by what they asked for, or why they asked for nothing, connections to the API by
    why they were ended. `lag` tells how many commits a standby lacks, None where there is none;
    `home` is the store's folder, None without one. Instances are by their pool and phase, refusals
    of these by their pool and cause. `dropped` are numbers of machines, by why.
    """

    datagrams: Mapping[str, int] = field(default_factory=dict)
    enrolments: Mapping[str, int] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)
    connections: Mapping[str, int] = field(default_factory=dict)
    lag: Callable[[], int | None] = lambda: None
    slots: Mapping[tuple[str, str], int] = field(default_factory=dict)
    refusals: Mapping[tuple[str, str], int] = field(default_factory=dict)
    home: Path | None = None
    dropped: Callable[[], Mapping[str, int]] = Counter


@dataclass(frozen=True, slots=True)
class MetricsRoute:
    """What was measured, and what is counted when it is asked for."""

    meters: Meters
    counted: "Counted"

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.METRICS, self.metrics)

    async def metrics(self, request: Request, _caller: Caller) -> Response:
        """Figures for Prometheus."""
        await self.counted.count()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self.meters.registry), headers={"Content-Type": content_type})


class Counted(Collector):
    """The figures of an engine as last counted, and the tallies of its runtime as they are."""

    def __init__(
        self, cluster: str, figures: Callable[[], Awaitable[Figures]], tallies: Tallies
    ) -> None:
        self._cluster = cluster
        self._figures = figures
        self._counted = Figures()
        self._tallies = tallies

    async def count(self) -> None:
        self._counted = await self._figures()

    def collect(self) -> Iterable[Metric]:
        figures = self._counted
        about = InfoMetricFamily("haptera", "The cluster, and the version of haptera.")
        about.add_metric((), {"cluster": self._cluster, "version": haptera.__version__})
        yield about
        yield from _standing(figures)
        yield from _work(figures)
        yield from _sockets(self._tallies)
        text = "Instances of a pool, by phase."
        yield _gauge("pool_instances", text, ("pool", "phase"), self._tallies.slots.items())
        text = "Instances that a pool's provider refused, by cause."
        yield _counter("pool_refusals", text, ("pool", "cause"), self._tallies.refusals.items())
        text = "Numbers of machines that were dropped."
        dropped = (((reason,), count) for reason, count in self._tallies.dropped().items())
        yield _counter("samples_dropped", text, ("reason",), dropped)


class CountedJobs(Collector):
    """The queue of jobs, as it is when asked for."""

    def __init__(self, queue: Callable[[], JobQueue], wall_s: Callable[[], float]) -> None:
        self._queue = queue
        self._wall_s = wall_s

    def collect(self) -> Iterable[Metric]:
        try:
            queue = self._queue()
        except HapteraError:  # it cannot be written, and is being read anew
            return
        states = (((state,), queue.counts[state]) for state in JobState)
        text = "Jobs, by state; only the last of the ended jobs are counted."
        yield _gauge("jobs", text, ("state",), states)
        text = "How long the longest-waiting first job of any lane has waited."
        waits = [self._wall_s() - one.submitted_s for one in queue.lanes.all_heads()]
        yield _gauge("jobs_longest_wait_seconds", text, (), [((), max(waits, default=0.0))])
        duties = Counter(queue.duty(name) for name in queue.holders.keys() | queue.duties.keys())
        text = "Nodes and backends that take jobs, by duty."
        yield _gauge("job_holders", text, ("duty",), (((one,), duties[one]) for one in DutyState))
        rooms = queue.rooms(None)
        text = "CPUs of the nodes that take jobs now: all, and the free ones."
        cpus = {"there": sum(one.capacity.cpus for one in rooms)}
        cpus["free"] = sum(one.free.cpus for one in rooms)
        yield _gauge("job_cpus", text, ("which",), (((name,), n) for name, n in cpus.items()))
        placeless = sum(one.count for one in demand(queue.lanes, rooms))
        text = "Jobs that no node has room for now."
        yield _gauge("jobs_without_place", text, (), [((), placeless)])


def _standing(figures: Figures) -> Iterator[Metric]:
    entities = (
        ((kind, condition), count)
        for kind, counts in figures.entities.items()
        for condition, count in counts.items()
    )
    yield _gauge("entities", "Entities, by kind and condition.", ("kind", "condition"), entities)
    children = (((tier,), count) for tier, count in figures.children.items())
    text = "Nodes with a session, by the age of the last hello."
    yield _gauge("children", text, ("tier",), children)
    refused = (((child,), count) for child, count in figures.refused.items())
    text = "Updates that a child sent about entities that do not belong to it; none was accepted."
    yield _counter("updates_refused", text, ("child",), refused)
    text = "1 while the brake stops all disruptive steps."
    yield _gauge("brake_engaged", text, (), [((), figures.brakes)])


def _work(figures: Figures) -> Iterator[Metric]:
    steps = (
        ((path, "worked" if worked else "failed"), count)
        for (path, worked), count in figures.steps.items()
    )
    text = "Steps that ended, by outcome."
    yield _counter("steps", text, ("step", "outcome"), steps)
    usual = (((path,), took_ns / _NS_PER_S) for path, took_ns in figures.usual_ns.items())
    text = "Usual duration of a look or step: the median of the last runs."
    yield _gauge("part_usual_duration_seconds", text, ("part",), usual)
    started = (((name,), one.started) for name, one in figures.modules.items())
    text = "Processes of a module that were started."
    yield _counter("module_processes_started", text, ("module",), started)
    serves = (((name,), one.serves) for name, one in figures.modules.items())
    text = "1 if a process of the module is serving."
    yield _gauge("module_serves", text, ("module",), serves)


def _sockets(tallies: Tallies) -> Iterator[Metric]:
    lag = tallies.lag()
    text = "Commits of the store that a standby has not received; absent without a standby."
    yield _gauge("standby_lag_commits", text, (), [] if lag is None else [((), lag)])
    free: list[tuple[tuple[str, ...], float]] = []
    with contextlib.suppress(OSError):  # a disk that cannot be asked takes no other figure away
        free = [] if tallies.home is None else [((), shutil.disk_usage(tallies.home).free)]
    yield _gauge("store_disk_free_bytes", "Bytes left on the disk of the store.", (), free)
    for name, text, label, counts in (
        ("datagrams_refused", "Datagrams refused, or not sent.", "reason", tallies.datagrams),
        ("enrolments", "Enrolment requests.", "outcome", tallies.enrolments),
        ("requests", "Requests of agents over TLS.", "request", tallies.requests),
        (
            "api_connections_ended",
            "API connections that were closed.",
            "reason",
            tallies.connections,
        ),
    ):
        samples = (((value,), count) for value, count in counts.items())
        yield _counter(name, text, (label,), samples)


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    """What goes up and down, by its labels."""
    return _filled(GaugeMetricFamily(f"haptera_{name}", text, labels=labels), samples)


def _counter(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    """What only grows, by its labels; `_total` is added to its name."""
    return _filled(CounterMetricFamily(f"haptera_{name}", text, labels=labels), samples)


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, samples: Samples
) -> GaugeMetricFamily | CounterMetricFamily:
    for values, number in samples:
        family.add_metric(values, number)
    return family
