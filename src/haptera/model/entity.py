"""The name of one thing whose state is kept: a node, a service on it, a module, and so on."""

import re

import msgspec

from haptera.model.errors import LimitError, ParseError

NAME_BYTES_MAX = 64
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


class EntityId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One entity: its kind, its name, and the node it is on (None: the whole cluster's).

    >>> str(EntityId("service", "web", "n01")), str(node_id("n01"))
    ('service:web@n01', 'node:n01')
    """

    kind: str
    name: str
    node: str | None

    def __str__(self) -> str:
        if self.node is None or self.kind == "node":
            return f"{self.kind}:{self.name}"
        return f"{self.kind}:{self.name}@{self.node}"

    @property
    def title(self) -> str:
        """What it is without where it is.

        >>> EntityId("service", "web", "n01").title, node_id("n01").title
        ('service web', 'node')
        """
        return self.kind if self.kind == "node" else f"{self.kind} {self.name}"


def node_id(name: str) -> EntityId:
    """The entity that a node itself is; a node is on itself."""
    return EntityId("node", name, name)


def parse_entity(text: str) -> EntityId:
    """Read `KIND:NAME@NODE`, `node:NAME` or `KIND:NAME`.

    Raises:
        HapteraError: the text is none of these, or a name in it is not one.
    """
    kind, colon, rest = text.partition(":")
    if not colon:
        do = "name one entity: KIND:NAME or KIND:NAME@NODE"
        raise ParseError(f"{text!r} is not an entity name", do=do)
    name, at, node = rest.partition("@")
    for part in (kind, name, node) if at else (kind, name):
        check_name(part)
    if kind == "node":
        if at:
            raise ParseError(f"{text!r}: a node is on itself", do=f"write node:{name}")
        return node_id(name)
    return EntityId(kind, name, node if at else None)


def check_name(text: str) -> str:
    """Return `text` where it can be a name.

    Raises:
        HapteraError: it is empty, too long, or has characters that names do not have.
    """
    if not is_name(text):
        raise LimitError(
            f"{text!r} is not a name",
            do=f"use at most {NAME_BYTES_MAX} letters, digits, dots, dashes and underscores,"
            " the first and last a letter or a digit",
        )
    return text


def is_name(text: str) -> bool:
    """Whether entities, and what else has a name, could be called so."""
    return _NAME.fullmatch(text) is not None and len(text) <= NAME_BYTES_MAX
