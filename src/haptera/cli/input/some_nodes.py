"""The nodes that `drain`, `hold` and `undrain` are given, and what these desire of their work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Final, TypeVar

import click

from haptera.cli.input import completing
from haptera.client import Client, calls
from haptera.kinds import node
from haptera.kinds.node import NodeWork
from haptera.model.entity import node_id
from haptera.model.errors import Code, HapteraError, LimitError
from haptera.queue.duty import DutyState
from haptera.rest.jobs import HolderView
from haptera.rest.schemas import PATCHES_MAX, EntityPatch
from haptera.selectors.nodeset import fold

Result = TypeVar("Result")
# Nothing is desired of a node's work: it is given jobs.
OPENED: Final[Mapping[str, None]] = dict.fromkeys(
    (node.work.name, node.work_why.name, node.work_until.name)
)


@dataclass(frozen=True, slots=True)
class SomeNodes:
    """The nodes that words mean: those in a state, or by whose word they take no jobs.

    With `take`, what others desire of their work is taken over.
    """

    words: Sequence[str]
    state: DutyState | None
    who: str | None
    take: bool

    def have(self, one: HolderView) -> bool:
        """Whether it is one of them, if the words mean it."""
        is_of = self.who is None or one.who in (self.who, f"user:{self.who}")
        return is_of and self.state in (None, one.duty)


def nodes_options(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give a command nodes, --state, --who and --take, as its `nodes`."""

    @click.option("--take", is_flag=True, help="Take over what others have set.")
    @click.option("--who", metavar="USER", help="Only nodes that USER drained or holds.")
    @click.option(
        "--state",
        type=click.Choice([one.value for one in DutyState]),
        help="Only nodes in this state, as `haptera queue` shows it.",
    )
    @click.argument(
        "words",
        metavar="NODE|SELECTOR...",
        nargs=-1,
        required=True,
        shell_complete=completing.selectors,
    )
    @wraps(command)
    def with_nodes(
        *given: object,
        words: tuple[str, ...],
        state: str | None,
        who: str | None,
        take: bool,
        **named: object,
    ) -> Result:
        known = None if state is None else DutyState(state)
        return command(*given, nodes=SomeNodes(words, known, who, take), **named)

    return with_nodes


def relieved(work: NodeWork, why: str, until: int | None = None) -> Mapping[str, str | int | None]:
    """The desired values of a node that is to take no new jobs."""
    values = (work.value, why, until)
    return dict(zip(OPENED, values, strict=True))


def desire_work(
    client: Client, nodes: SomeNodes, wish: Mapping[str, str | int | None], why: str | None
) -> list[HolderView]:
    """Write this of all these nodes, or of none; where they stand then.

    Raises:
        HapteraError: none is meant, too many are, or the work of one is another's to say.
    """
    meant = node_selector(nodes.words)
    names = [one.name for one in client.ask(calls.queue(meant)).holders if nodes.have(one)]
    if not names:
        is_so = "is there" if nodes.state is None else f"is {nodes.state}"
        by_whom = "" if nodes.who is None else f" by the word of {nodes.who}"
        what, do = f"no node of {meant} {is_so}{by_whom}", "see which there are: haptera queue"
        raise HapteraError(what, do=do, code=Code.SELECTS_NOTHING)
    if len(names) > PATCHES_MAX:
        what = f"{meant!r} matches {len(names)} nodes, more than {PATCHES_MAX}"
        raise LimitError(what, do="select fewer at once, or use a site file")
    patches = [EntityPatch(str(node_id(name)), {**wish}) for name in names]
    client.ask(calls.patch(patches, all_or_nothing=True, take=nodes.take, why=why))
    return client.ask(calls.queue(fold(names))).holders


def node_selector(words: Sequence[str]) -> str:
    """One selector of all nodes that these words mean: names, node-sets, or selectors.

    >>> node_selector(["rack1n[1-4]"]), node_selector(["n1", "node:* and power=off"])
    ('rack1n[1-4]', '(n1) or (node:* and power=off)')
    """
    return words[0] if len(words) == 1 else " or ".join(f"({one})" for one in words)
