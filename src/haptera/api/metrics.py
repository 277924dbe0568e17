"""The route that Prometheus reads: `GET /metrics`, in its text format, with its conventions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

import haptera
from haptera.api.endpoint import Caller, Contract, Endpoint
from haptera.api.meters import Meters
from haptera.core.figures import Figures
from haptera.runtime.tokens import Scope

_NS_PER_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class Tallies:
    """What the runtime counts as it happens.

    Datagrams by why they were refused or not sent, enrolments by what came of them, requests of
    agents over TLS by what they asked for, or why they asked for nothing.
    """

    datagrams: Mapping[str, int] = field(default_factory=dict)
    enrolments: Mapping[str, int] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricsRoute:
    """What was measured, and what is counted when it is asked for."""

    meters: Meters

    def endpoints(self) -> Iterator[Endpoint]:
        contract = Contract(media_type="text/plain")
        yield Endpoint("GET", "/metrics", Scope.READ, self.metrics, contract)

    async def metrics(self, request: Request, _caller: Caller) -> Response:
        """Figures for Prometheus."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self.meters.registry), headers={"Content-Type": content_type})


class Counted(Collector):
    """The figures of an engine, and the tallies of its runtime, as they are when asked for."""

    def __init__(self, cluster: str, figures: Callable[[], Figures], tallies: Tallies) -> None:
        self._cluster = cluster
        self._figures = figures
        self._tallies = tallies

    def collect(self) -> Iterable[Metric]:
        figures = self._figures()
        about = InfoMetricFamily("haptera", "The cluster, and the version that serves it.")
        about.add_metric((), {"cluster": self._cluster, "version": haptera.__version__})
        yield about
        yield from _standing(figures)
        yield from _work(figures)
        yield from _sockets(self._tallies)


def _standing(figures: Figures) -> Iterator[Metric]:
    entities = GaugeMetricFamily(
        "haptera_entities", "Entities, by kind and condition.", labels=("kind", "condition")
    )
    for kind, counts in figures.entities.items():
        for condition, count in counts.items():
            entities.add_metric((kind, condition), count)
    yield entities
    children = GaugeMetricFamily(
        "haptera_children",
        "Nodes that have enrolled, by how lately they were heard.",
        labels=("tier",),
    )
    for tier, count in figures.children.items():
        children.add_metric((tier,), count)
    yield children
    yield GaugeMetricFamily(
        "haptera_brake_engaged", "1 while the brake stops all that may harm.", figures.brakes
    )


def _work(figures: Figures) -> Iterator[Metric]:
    steps = CounterMetricFamily(
        "haptera_steps", "Steps that ended, by what came of them.", labels=("step", "outcome")
    )
    for (path, worked), count in figures.steps.items():
        steps.add_metric((path, "worked" if worked else "failed"), count)
    yield steps
    usual = GaugeMetricFamily(
        "haptera_part_usual_duration_seconds",
        "What a look or a step usually takes: the median of the last ones.",
        labels=("part",),
    )
    for path, took_ns in figures.usual_ns.items():
        usual.add_metric((path,), took_ns / _NS_PER_S)
    yield usual
    started = CounterMetricFamily(
        "haptera_module_processes_started", "Processes of a module started.", labels=("module",)
    )
    serves = GaugeMetricFamily(
        "haptera_module_serves", "1 where a process of the module serves.", labels=("module",)
    )
    for name, one in figures.modules.items():
        started.add_metric((name,), one.started)
        serves.add_metric((name,), one.serves)
    yield from (started, serves)


def _sockets(tallies: Tallies) -> Iterator[Metric]:
    for name, text, label, counts in (
        ("datagrams_refused", "Datagrams refused, or not sent.", "reason", tallies.datagrams),
        ("enrolments", "Enrolments asked for.", "outcome", tallies.enrolments),
        ("requests", "Requests of agents over TLS.", "request", tallies.requests),
    ):
        family = CounterMetricFamily(f"haptera_{name}", text, labels=(label,))
        for value, count in counts.items():
            family.add_metric((value,), count)
        yield family
