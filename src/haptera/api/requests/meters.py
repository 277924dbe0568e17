"""What a daemon measures of its own work, as it happens, for Prometheus to read."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector

from haptera.runtime.clock import now_ns

_NS_PER_S: Final = 1e9
_TURNS_S: Final = (0.0001, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0)
_ANSWERS_S: Final = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)


class Meters:
    """The counters and durations of one process; `registry` gathers them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self.registry)
        self._turns = Histogram(
            "haptera_turn_duration_seconds",
            "Duration of the engine's turns; nothing else runs in this process meanwhile.",
            buckets=_TURNS_S,
            registry=self.registry,
        )
        self._events = Counter(
            "haptera_events_total",
            "Events that the engine has processed.",
            registry=self.registry,
        )
        self._answers = Histogram(
            "haptera_api_request_duration_seconds",
            "Time until the answer to an API request began, by route and status.",
            ("method", "route", "code"),
            buckets=_ANSWERS_S,
            registry=self.registry,
        )

    def turned(self, events: int, began_at: int) -> None:
        """The engine has handled so many events, in a turn that began then."""
        self._turns.observe((now_ns() - began_at) / _NS_PER_S)
        self._events.inc(events)

    def answered(self, method: str, route: str, code: int, began_at: int) -> None:
        """A request for a route that came then was answered."""
        took_s = (now_ns() - began_at) / _NS_PER_S
        self._answers.labels(method, route, code).observe(took_s)
