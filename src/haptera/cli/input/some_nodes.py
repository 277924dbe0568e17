"""The nodes that `drain`, `hold` and `resume` are given: one, or many in one request."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from haptera.cli.input import completing
from haptera.client import Client, calls
from haptera.model.entity import is_name
from haptera.queue.duty import DutyState
from haptera.rest.jobs import DutyBody, HolderView

_NODE: Final = "node:"


def nodes_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The nodes, and which of them: by their duty, and by who set it."""
    for option in (
        click.option("--who", metavar="USER", help="Only nodes whose duty USER set."),
        click.option(
            "--state",
            type=click.Choice([one.value for one in DutyState]),
            help="Only nodes in this state, as `haptera queue` shows it.",
        ),
        click.argument(
            "nodes",
            metavar="NODE|SELECTOR...",
            nargs=-1,
            required=True,
            shell_complete=completing.selectors,
        ),
    ):
        command = option(command)
    return command


def set_duties(
    client: Client, nodes: Sequence[str], body: DutyBody | None, state: str | None, who: str | None
) -> list[HolderView]:
    """Have these nodes take no new jobs, or with no body take them again."""
    if (state, who) == (None, None) and (node := _single(nodes)) is not None:
        call = calls.resume(node) if body is None else calls.relieve(node, body)
        return [client.ask(call)]
    select = node_selector(nodes)
    known = None if state is None else DutyState(state)
    if body is None:
        return client.ask(calls.resume_many(select, state=known, who=who)).holders
    return client.ask(calls.relieve_many(select, body, state=known, who=who)).holders


def node_selector(words: Sequence[str]) -> str:
    """One selector of all nodes that these words mean: names, node-sets, or selectors.

    >>> node_selector(["rack1n[1-4]"]), node_selector(["n1", "node:* and power=off"])
    ('rack1n[1-4]', '(n1) or (node:* and power=off)')
    """
    return words[0] if len(words) == 1 else " or ".join(f"({one})" for one in words)


def _single(words: Sequence[str]) -> str | None:
    """The node, where one is given by its name."""
    name = words[0].removeprefix(_NODE)
    return name if len(words) == 1 and is_name(name) else None
