"""Which entities a person means: all of them, those on some nodes, or some of one kind."""

import re
from dataclasses import dataclass
from typing import Final

from haptera.model.entity import EntityId, check_name
from haptera.model.errors import HapteraError
from haptera.model.nodeset import expand

SELECTOR_BYTES_MAX: Final = 512
ALL: Final = "*"
_GLOB = re.compile(r"[A-Za-z0-9._*-]+")


@dataclass(frozen=True, slots=True)
class Names:
    """Names given one by one, or by a pattern in which `*` stands for any characters."""

    exact: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.exact or (
            self.pattern is not None and self.pattern.fullmatch(name) is not None
        )


@dataclass(frozen=True, slots=True)
class Selector:
    """The entities of `kind` (None: of any), of these names, on these nodes (None: wherever).

    >>> web = parse_selector("service:web@rack[1-4]n1")
    >>> EntityId("service", "web", "rack2n1") in web, EntityId("service", "web", "rack2n2") in web
    (True, False)
    >>> EntityId("service", "web", "rack2n2") in parse_selector("rack*n2")
    True
    """

    text: str
    kind: str | None = None
    names: Names | None = None
    nodes: Names | None = None

    def __contains__(self, entity: EntityId) -> bool:
        return (
            self.kind in (None, entity.kind)
            and (self.names is None or entity.name in self.names)
            and (self.nodes is None or (entity.node is not None and entity.node in self.nodes))
        )

    def __str__(self) -> str:
        return self.text


def parse_selector(text: str) -> Selector:
    """Read `*`, `NODESET`, `node:NODESET`, `KIND:NAMES` or `KIND:NAMES@NODESET`.

    A bare node-set means the nodes and all that is on them. Each of the names may be a node-set,
    or a pattern with `*`.

    Raises:
        HapteraError: the text is none of these.
    """
    if len(text.encode()) > SELECTOR_BYTES_MAX:
        raise HapteraError(
            f"a selector of over {SELECTOR_BYTES_MAX} bytes", do="use a shorter node-set"
        )
    if text == ALL:
        return Selector(text)
    kind, colon, rest = text.partition(":")
    if not colon:
        return Selector(text, nodes=_names(text))
    check_name(kind)
    names, at, nodes = rest.partition("@")
    if kind == "node" and at:
        raise HapteraError(f"{text!r}: a node is on itself", do=f"write node:{names}")
    return Selector(text, kind, _names(names), _names(nodes) if at else None)


def _names(text: str) -> Names | None:
    """Some names, or None for all."""
    if text == ALL:
        return None
    if ALL in text:
        if _GLOB.fullmatch(text) is None:
            raise HapteraError(
                f"{text!r}: a pattern with * holds only letters, digits, dots, dashes, underscores",
                do="write a node-set without *, or a pattern without brackets",
            )
        return Names(pattern=_pattern(text))
    return Names(frozenset(expand(text)))


def _pattern(text: str) -> re.Pattern[str]:
    """The text with each `*` for any characters.

    What stands between two `*` is sought once, where it comes first: a name of 64 letters and a
    pattern of many `*` would otherwise take years.
    """
    first, *between, last = map(re.escape, text.split(ALL))
    sought = "".join(f"(?>.*?{piece})" for piece in between if piece)
    return re.compile(f"{first}{sought}.*{last}")
