"""The table of a route reflector (RFC 4456): what each source announced, and the best of it.

It is a function of the messages alone, in whatever process: replicas that apply the same ones have
the same table, and say the same changes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from bgp.attributes import (
    AS_PATH,
    CLUSTER_LIST,
    LOCAL_PREF,
    MED,
    OPTIONAL,
    ORIGIN,
    ORIGINATOR_ID,
    PARTIAL,
    TRANSITIVE,
    Attribute,
    Attributes,
    as_path_length,
    known,
    number_of,
    value_of,
    with_attribute,
)
from bgp.messages import END_OF_TABLE, Open, Prefix, Update, packed

LOCAL_PREF_DEFAULT: Final = 100
# With more, there would be no room for a route beside what reflection adds.
ATTRIBUTE_BYTES_MAX: Final = 4_000

# None: the prefix has no route any more.
Changes = dict[Prefix, Attributes | None]


@dataclass(frozen=True, slots=True)
class Heard:
    """A message, and which process of which source had it; an OPEN begins another session."""

    source: str
    incarnation: int
    message: Open | Update


@dataclass(slots=True)
class Source:
    """The announcements of one peer, in its last session and before."""

    incarnation: int
    opened: Open
    routes: dict[Prefix, Attributes] = field(default_factory=dict)
    # Of an earlier session: they hold until the table of this one has come to its end.
    stale: dict[Prefix, Attributes] = field(default_factory=dict)

    def route(self, prefix: Prefix) -> Attributes | None:
        """Its route to a prefix, if it has one."""
        return self.routes.get(prefix) or self.stale.get(prefix)


@dataclass(slots=True)
class Table:
    """All sources of one reflector, and the best route to each prefix, as it is reflected."""

    cluster_id: bytes
    sources: dict[str, Source] = field(default_factory=dict)
    best: dict[Prefix, Attributes] = field(default_factory=dict)

    def apply(self, heard: Heard) -> Changes:
        """Take a message in, and say what it changes of the best routes.

        What an earlier process of the source had is left out: it was thought dead, and its
        successor has read the whole table anew.
        """
        match heard.message:
            case Open() as message:
                return self._opened(heard, message)
            case Update() as message:
                source = self.sources.get(heard.source)
                if source is None or source.incarnation != heard.incarnation:
                    return {}
                return self._chosen(list(_updated(source, message)))

    def history(self) -> Iterator[Heard]:
        """As few messages as make this table of an empty one."""
        for name, source in sorted(self.sources.items()):
            if source.stale:
                yield Heard(name, source.incarnation, source.opened)
                for message in packed(source.stale.items()):
                    yield Heard(name, source.incarnation, message)
            yield Heard(name, source.incarnation, source.opened)
            for message in packed(source.routes.items()):
                yield Heard(name, source.incarnation, message)

    def _opened(self, heard: Heard, message: Open) -> Changes:
        last = self.sources.get(heard.source)
        if last is None:
            self.sources[heard.source] = Source(heard.incarnation, message)
            return {}
        if heard.incarnation < last.incarnation:
            return {}
        stale = last.stale | last.routes
        self.sources[heard.source] = Source(heard.incarnation, message, stale=stale)
        # It may have another router id now.
        return self._chosen(sorted(stale))

    def _chosen(self, touched: Iterable[Prefix]) -> Changes:
        changes: Changes = {}
        for prefix in touched:
            best = self._best(prefix)
            if best == self.best.get(prefix):
                continue
            changes[prefix] = best
            if best is None:
                del self.best[prefix]
            else:
                self.best[prefix] = best
        return changes

    def _best(self, prefix: Prefix) -> Attributes | None:
        """The best route to a prefix, as it is reflected."""
        routes = [
            (_rank(reflected, name), reflected)
            for name, source in self.sources.items()
            if (route := source.route(prefix)) is not None
            and (reflected := self._reflected(route, source.opened)) is not None
        ]
        return min(routes, default=(None, None))[1]

    def _reflected(self, route: Attributes, opened: Open) -> Attributes | None:
        """The route with who brought it here; None: it has been here already, or is too large."""
        clusters = value_of(route, CLUSTER_LIST) or b""
        if self.cluster_id in (clusters[i : i + 4] for i in range(0, len(clusters), 4)):
            return None
        if value_of(route, ORIGINATOR_ID) is None:
            route = with_attribute(route, Attribute(ORIGINATOR_ID, OPTIONAL, opened.router_id))
        passed = Attribute(CLUSTER_LIST, OPTIONAL, self.cluster_id + clusters)
        route = tuple(_passed_on(with_attribute(route, passed)))
        size = sum(len(one.encode()) for one in route)
        return route if size <= ATTRIBUTE_BYTES_MAX else None


def _updated(source: Source, message: Update) -> Iterator[Prefix]:
    """Change the source, and say which prefixes that touches."""
    if message == END_OF_TABLE:
        # Sorted, for who began with a state has them in another order.
        gone, source.stale = sorted(source.stale), {}
        yield from gone
    for prefix in message.withdrawn:
        source.stale.pop(prefix, None)
        source.routes.pop(prefix, None)
        yield prefix
    for prefix in message.announced:
        source.stale.pop(prefix, None)
        source.routes[prefix] = message.attributes
        yield prefix


def _passed_on(route: Attributes) -> Iterator[Attribute]:
    """Unknown attributes go on as partial where they may, and end here where they may not."""
    for one in route:
        if known(one):
            yield one
        elif one.flags & TRANSITIVE:
            yield Attribute(one.code, one.flags | PARTIAL, one.value)


def _rank(route: Attributes, source: str) -> tuple[int, int, int, int, int, bytes, str]:
    """The lowest is the best: RFC 4271, 9.1.2.2, for routes of one AS; no two are equal."""
    return (
        -number_of(route, LOCAL_PREF, LOCAL_PREF_DEFAULT),
        as_path_length(value_of(route, AS_PATH) or b""),
        number_of(route, ORIGIN, 0),
        number_of(route, MED, 0),
        len(value_of(route, CLUSTER_LIST) or b""),
        value_of(route, ORIGINATOR_ID) or b"",
        source,
    )
