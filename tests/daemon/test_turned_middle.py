"""A parent in the middle that has turned: what it reports and answers concerns its own alone."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.daemon.parts import catalog_of, codec_of
from haptera.daemon.tree.below import Below, SubtreeReport
from haptera.model.answers.views import Condition, ParentView
from haptera.model.changes import Stored, StoredEntity
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.events import (
    Asked,
    Event,
    NumberedRequest,
    Released,
    ReportAnswer,
    Ticked,
    ToldFromAbove,
)
from haptera.model.facts import Method
from haptera.model.messages import (
    ObservedUpdate,
    Permit,
    ReportNotes,
    RoomAsk,
    SeenValue,
    Standing,
)
from haptera.model.parts import Context
from haptera.planner.domain.pieces import at_once
from haptera.runtime.clock import now_ns
from haptera.runtime.store.sessions import SavedSession
from haptera.wire.seal import SECRET_BYTES, Agreement

# Of three levels: each with the parents that it may have; n3 is the root's own, n4 is below t2.
LISTS: Final = {"t1": "", "t2": "", "m1": "t1", "n1": "m1", "n3": "", "n4": "t2"}
OTHERS: Final = tuple(map(node_id, ("t2", "n3", "n4")))
ODD: Final = (
    *(None, True, -1, 0, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, float("nan"), b"\xff", b""),
    *(
        "",
        "a\0b",
        "\x1b[1m\u202e",
        "n3",
        "n4",
        "t2",
        "node:n3",
        "a" * 100_000,
        [],
        {},
        [[]],
        {"": 0},
    ),
    *(["node", "n3", "n3"], {"kind": "node", "name": "n3", "node": "n3"}, ["x"] * 1_000),
)


class OfTree:
    """One parent of the tree, with all that it was made to adopt or to doubt."""

    def __init__(self, name: str | None) -> None:
        entities = [
            StoredEntity(node_id(node), {"parents": listed} if listed else {}, "site", {}, 1)
            for node, listed in LISTS.items()
        ]
        side = Side(Context.PARENT, None, 1, "boot", S, name=name)
        catalog = catalog_of(["labnode"], ())
        stored = Stored(7, 1, entities, [], {})
        # It stands, for what is believed is forgotten in time.
        self.now = now_ns()
        self.engine = Engine(side, catalog, stored, codec_of(catalog).schema, self.now)
        self.concerned = set[str]()
        self.below = Below(self.engine, self.handle, self._adopt, self._doubt, 0)

    def handle(self, events: Iterable[Event]) -> None:
        self.engine.handle(events, self.now)

    def later(self) -> None:
        """All that is due within a minute comes to pass."""
        for second in range(60):
            self.engine.handle([Ticked()], self.now + second * S)

    async def _adopt(self, sessions: Sequence[SavedSession]) -> None:
        self.concerned.update(one.peer for one in sessions)

    async def _doubt(self, node: str, _incarnation: int) -> None:
        self.concerned.add(node)

    def take(self, body: bytes) -> None:
        asyncio.run(self.below.take(body))

    def known(self) -> Mapping[EntityId, Any]:
        """The rows of a report on nodes that are not below t1."""
        rows = [(one, self.engine.table.get(one)) for one in OTHERS]
        return {one: row and (row.belief.known, row.stance.condition) for one, row in rows}


def seen(node: str) -> ObservedUpdate:
    values = {"power": SeenValue("on", True, Method.READ, 0, "labnode")}
    return ObservedUpdate(node_id(node), 1, values, standing=Standing(Condition.CONVERGED, 0, None))


def report(parent: str, middle: str, node: str) -> SubtreeReport:
    """An honest parent's report of itself, of one below it, and of a node that this one has."""
    agreement = Agreement(bytes(SECRET_BYTES), UUID(int=7), UUID(int=1), 1, 2, 3)
    return SubtreeReport(
        parent,
        (seen(node),),
        {node: True},
        (SavedSession(node, agreement, ("127.0.0.1", 4271), 5, "window"),),
        ReportNotes(1, 1, (RoomAsk("i", node_id(node), 5),), "why", 1, 1),
        (ParentView(parent, None, "1", "", 0), ParentView(middle, parent, "1", node, 0)),
        {node: 1},
    )


def altered(right: Any) -> Iterator[Any]:
    """Right bodies with any other value at one place, on every level, or with one thing more."""
    yield from ODD
    match right:
        case dict():
            for key, inner in right.items():
                yield from (right | {key: one} for one in altered(inner))
                yield {name: one for name, one in right.items() if name != key}
                yield from ({one: inner} for one in ODD if isinstance(one, str | int))
        case list() | tuple():
            for number, inner in enumerate(right):
                before, after = right[:number], right[number + 1 :]
                yield from ([*before, one, *after] for one in altered(inner))
            yield [*right] * 100


def plain(value: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value))


def test_a_report_that_is_altered_anywhere_concerns_its_own_part_of_the_tree_alone() -> None:
    root = OfTree(None)
    root.take(msgspec.msgpack.encode(report("t2", "x", "n4")))
    before, taken = root.known(), 0
    assert before[node_id("n4")][0]
    root.concerned.clear()
    for one in altered(plain(report("t1", "m1", "n1"))):
        if isinstance(one, dict) and one.get("parent") not in ("t1", "m1", "n1"):
            continue  # The name is its own statement; its token vouches for it.
        try:
            root.take(msgspec.msgpack.encode(one))
        except HapteraError:
            continue
        taken += 1
    assert root.known() == before
    assert root.concerned == {"n1"}
    root.later()
    at_once(root.below.parents())
    assert taken > 200


def test_an_answer_from_above_that_is_altered_anywhere_ends_nobody_below() -> None:
    leaf, heeded = OfTree("m1"), 0
    handed = (NumberedRequest(1, Asked(node_id("n1")), 5), NumberedRequest(2, Released("n1"), 5))
    for one in altered(plain(ReportAnswer(1, handed, (Permit("i", granted=True),)))):
        try:
            told = msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=ReportAnswer)
        except ValueError:
            continue  # It is as no answer.
        leaf.handle([ToldFromAbove(told, now_ns())])
        heeded += 1
    assert leaf.known() == OfTree("m1").known()
    leaf.later()
    assert heeded > 50


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("agreement", "parent_index"), 1 << 32),
        (("agreement", "child_index"), -1),
        (("agreement", "incarnation"), -1),
        (("address",), ["127.0.0.1", 1 << 16]),
        (("address",), ["127.0.0.1", 0]),
        (("address",), ["a\0b", 4271]),
        (("address",), ["slow.example", 4271]),
    ],
)
def test_a_session_that_no_datagram_could_be_of_is_no_report(
    place: tuple[str, ...], value: Any
) -> None:
    """Kept once, it would end the parent with the first datagram, after each start."""
    told = plain(report("t1", "m1", "n1"))
    inner = told["sessions"][0]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    root = OfTree(None)
    with pytest.raises(HapteraError, match="this is not a report"):
        root.take(msgspec.msgpack.encode(told))
    assert root.concerned == set()
