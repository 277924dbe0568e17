"""Entities as people name them: a node by its name alone."""

from collections.abc import Callable
from typing import Any

import click

from haptera.cli.input import completing
from haptera.model.entity import is_name


def entity_named(text: str, kind: str = "node") -> str:
    """The entity that is meant where one has to be: `rack1n1` is `node:rack1n1`.

    >>> entity_named("rack1n1"), entity_named("service:web@rack1n1"), entity_named("rack1*")
    ('node:rack1n1', 'service:web@rack1n1', 'rack1*')
    >>> entity_named("ledger", "group"), entity_named("group:ledger", "group")
    ('group:ledger', 'group:ledger')
    """
    return f"{kind}:{text}" if is_name(text) else text


class NodeName(click.ParamType[str]):
    """A node by its name, or as the entity that completion offers."""

    name = "NODE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name alone.

        >>> NodeName().convert("node:rack1n1", None, None)
        'rack1n1'
        """
        return str(value).removeprefix("node:")


def node_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """The one node that a verb is about, as its `node`."""
    return click.argument("node", type=NodeName(), shell_complete=completing.entities)(command)
