"""Sealed datagrams between real sockets: what reaches the engine, and what never does."""

import asyncio
import contextlib
import os
import select
import socket
import tracemalloc
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

import msgspec
import pytest

from haptera.kinds import KINDS
from haptera.model.entity import EntityId
from haptera.model.events import Alive, Event, Heard
from haptera.model.messages import DesiredUpdate, Mark, Message
from haptera.runtime import clock
from haptera.runtime.network import arrivals
from haptera.runtime.network.arrivals import WAITED_NS_MAX
from haptera.runtime.network.peer_link import (
    CHANGED_AT_ONCE_MAX,
    CHANGED_PER_S,
    LINE_MAX,
    LOST_AT_ONCE_MAX,
    Address,
)
from haptera.runtime.network.udp import DRAIN_DATAGRAMS_MAX, INBOX_MAX, Udp
from haptera.wire.frame import DatagramType, FrameFault, Header, Suite, pack_header
from haptera.wire.seal import DERIVATIONS_PER_S_MAX, Agreement, SealRole, Session
from haptera.wire.sync import encode
from haptera.wire.updates import Codec
from tests.lab import rig
from tests.network import NETWORK

pytestmark = pytest.mark.net

# Where nobody else takes a port that was let go of.
HOST = f"{NETWORK}.50.1"
# With a planted bug it is waited for in vain.
until = partial(rig.until, within_s=float(os.environ.get("WAITED_WITHIN_S", "60")))
# A socket's buffer of so many bytes has no room for as many datagrams.
ROOM_BYTES = 8 << 10
ROUNDS_MAX = 100
CODEC = Codec(KINDS.values(), schema=77)
HELLO = Message(1, 0, 77, Mark(1, 1, 1), Mark(0, 0, 0))
CHANGED = msgspec.structs.replace(HELLO, desired=Mark(1, 2, 2))
# Links, and what each takes with its session, before anything is heard on it.
SILENT, SILENT_BYTES_MAX = 500, 2_000
PARENT, CHILD = SealRole.PARENT, SealRole.CHILD


@dataclass
class End:
    """One process: a socket, its sessions, and all that they told of."""

    udp: Udp
    boot: int
    address: Address
    events: list[Event] = field(default_factory=list)
    moved: list[tuple[str, Address, int]] = field(default_factory=list)
    sessions: dict[str, Session] = field(default_factory=dict)

    def know(
        self,
        peer: str,
        role: SealRole,
        address: Address,
        saved: int | None = None,
        *,
        number: int = 0,
    ) -> None:
        """Have a session with this peer, one of those that `number` tells apart."""
        agreement = Agreement(
            bytes([number] * 32), UUID(int=1), UUID(int=2), 1, 10 + number, 1000 + number
        )
        self.sessions[peer] = Session(agreement, role, self.boot, saved)
        self.udp.add(peer, self.sessions[peer], address)

    @property
    def heard(self) -> list[Message]:
        return [event.message for event in self.events if isinstance(event, Heard)]

    @property
    def alive(self) -> list[tuple[str, ...]]:
        return [event.peers for event in self.events if isinstance(event, Alive)]


class Stage:
    """Processes on loopback, all closed in the end."""

    def __init__(self) -> None:
        self.ends: list[End] = []

    def end(self, boot: int, port: int = 0, waiting: Callable[[], int] = lambda: 0) -> End:
        udp = Udp.bind(HOST, port)
        end = End(udp, boot, (HOST, udp.port))
        udp.start(CODEC, end.events.extend, lambda *what: end.moved.append(what), waiting)
        self.ends.append(end)
        return end

    def pair(self, waiting: Callable[[], int] = lambda: 0) -> tuple[End, End]:
        """A parent and a child that were just enrolled; so many events wait at the parent."""
        parent, child = self.end(0xB1, waiting=waiting), self.end(0xA1)
        parent.know("n01", PARENT, child.address)
        child.know("parent", CHILD, parent.address)
        return parent, child


@contextlib.asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    """A stage, all of whose sockets are let go of after it."""
    stage = Stage()
    try:
        yield stage
    finally:
        for end in stage.ends:
            end.udp.close()


async def meet(parent: End, child: End) -> None:
    """Both have heard a hello of the other."""
    child.udp.tell("parent", HELLO)
    await until(lambda: parent.heard == [HELLO])
    parent.udp.tell("n01", HELLO)
    await until(lambda: child.heard == [HELLO])


@contextlib.asynccontextmanager
async def met() -> AsyncIterator[tuple[Stage, End, End]]:
    """A stage with a parent and a child that have heard each other."""
    async with staged() as stage:
        parent, child = stage.pair()
        await meet(parent, child)
        yield stage, parent, child


async def with_another(stage: Stage) -> tuple[End, End, End]:
    """A parent, its child and another node, both of which it has heard."""
    parent, child = stage.pair()
    other = stage.end(0xA2)
    parent.know("n02", PARENT, other.address, number=1)
    other.know("parent", CHILD, parent.address, number=1)
    await meet(parent, child)
    other.udp.tell("parent", HELLO)
    await until(lambda: len(parent.heard) == 2)
    return parent, child, other


def stranger() -> socket.socket:
    """A socket that no session knows."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((HOST, 0))
    made.settimeout(0)
    return made


def assert_got_nothing(receiver: socket.socket) -> None:
    with pytest.raises(BlockingIOError):
        receiver.recv(2000)


async def test_the_first_hello_is_heard_though_it_takes_a_hi_first() -> None:
    async with staged() as stage:
        parent, child = stage.pair()

        child.udp.tell("parent", HELLO)
        await until(lambda: len(parent.events) > 0)

        (event,) = parent.events
        assert isinstance(event, Heard)
        assert (event.peer, event.boot, event.message) == ("n01", 0xA1, HELLO)
        assert parent.moved == [("n01", child.address, 0xA1)]
        assert child.moved == [("parent", parent.address, 0xB1)]


async def test_a_hello_that_says_the_same_again_is_not_read_again() -> None:
    async with met() as (_, parent, child):
        child.udp.tell("parent", HELLO)
        await until(lambda: parent.alive == [("n01",)])
        child.udp.tell("parent", CHANGED)
        await until(lambda: len(parent.heard) == 2)

        assert parent.heard == [HELLO, CHANGED]
        assert parent.alive == [("n01",)]


async def test_what_waited_while_nobody_read_counts_from_when_it_arrived() -> None:
    """As long as a loop does not run, its process is as good as stopped."""
    async with met() as (_, parent, child):
        parent.events.clear()

        before = clock.now_ns()
        child.udp.tell("parent", CHANGED)
        child.udp.tell("parent", CHANGED)
        wait_unread(before + 3 * WAITED_NS_MAX)
        between = clock.now_ns()
        child.udp.tell("parent", HELLO)
        sent = clock.now_ns()
        wait_unread(sent + 3 * WAITED_NS_MAX)
        await until(lambda: parent.heard == [CHANGED, HELLO])

        changed, hello = (one for one in parent.events if isinstance(one, Heard))
        assert before <= changed.arrived_at <= between - 2 * WAITED_NS_MAX
        assert between <= hello.arrived_at <= sent


async def test_a_wall_clock_that_is_set_makes_nothing_older_than_it_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with staged() as stage:
        began = clock.now_ns()
        parent, child = stage.pair()
        await meet(parent, child)
        ahead = clock.wall_offset_ns() + 10**18
        monkeypatch.setattr(arrivals, "wall_offset_ns", lambda: ahead)
        child.udp.tell("parent", CHANGED)
        await until(lambda: parent.heard == [HELLO, CHANGED])
        child.udp.tell("parent", HELLO)
        await until(lambda: len(parent.heard) == 3)

        changed, hello = (one for one in parent.events[-2:] if isinstance(one, Heard))
        assert began <= changed.arrived_at <= hello.arrived_at <= clock.now_ns()


def wait_unread(until_ns: int) -> None:
    """Block the loop until then."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as never:
        while (left_ns := until_ns - clock.now_ns()) > 0:
            select.select([never], [], [], left_ns / 1e9)


async def test_what_one_says_beyond_its_budget_counts_from_when_it_arrived() -> None:
    async with met() as (_, parent, child):
        beyond = msgspec.structs.replace(HELLO, desired=Mark(1, 9_999, 9_999))
        for number in range(CHANGED_AT_ONCE_MAX + LINE_MAX):
            child.udp.tell("parent", msgspec.structs.replace(HELLO, desired=Mark(1, number, 7)))
            await asyncio.sleep(0)
        child.udp.tell("parent", beyond)
        sent = clock.now_ns()
        await until(lambda: parent.heard[-1] == beyond)

        last = parent.events[-1]
        assert isinstance(last, Heard)
        assert last.arrived_at <= sent


async def test_unchanged_hellos_of_one_drain_are_one_event() -> None:
    async with staged() as stage:
        parent = stage.end(0xB1)
        names = [f"n{number:02}" for number in range(20)]
        children = [stage.end(0xA00 + number) for number in range(20)]
        for number, child in enumerate(children):
            parent.know(names[number], PARENT, child.address, number=number)
            child.know("parent", CHILD, parent.address, number=number)
            child.udp.tell("parent", HELLO)
        await until(lambda: len(parent.heard) == 20)

        # All are sent before the loop, and so the parent, has its turn.
        for child in [*children, *children]:
            child.udp.tell("parent", HELLO)
        await until(lambda: len(parent.alive) > 0)

        assert [sorted(peers) for peers in parent.alive] == [names]


async def test_what_changed_in_a_drain_is_told_in_order() -> None:
    async with met() as (_, parent, child):
        parent.events.clear()

        for message in (HELLO, CHANGED, HELLO, HELLO):
            child.udp.tell("parent", message)
        await until(lambda: len(parent.events) == 3)

        assert parent.heard == [CHANGED, HELLO]
        assert parent.alive == [("n01",)]


async def test_who_says_something_new_is_not_also_said_to_be_as_before() -> None:
    async with met() as (_, parent, child):
        parent.events.clear()

        for message in (HELLO, CHANGED):
            child.udp.tell("parent", message)
        await until(lambda: parent.heard == [CHANGED])

        assert parent.alive == []


async def test_a_hello_that_was_overtaken_is_no_news() -> None:
    async with met() as (_, parent, child):
        with stranger() as slow:
            overtaken = child.sessions["parent"].seal(encode(HELLO, CODEC, 77)[0])
            child.udp.tell("parent", CHANGED)
            await until(lambda: parent.heard == [HELLO, CHANGED])
            slow.sendto(overtaken, parent.address)
            await until(lambda: parent.alive == [("n01",)])

        assert parent.heard == [HELLO, CHANGED]
        assert parent.moved == [("n01", child.address, 0xA1)]


async def test_all_datagrams_of_a_message_arrive() -> None:
    async with met() as (_, parent, child):
        updates = tuple(
            DesiredUpdate(EntityId("service", f"s{at}", "n01"), at, {"command": "x" * 400}, {})
            for at in range(5)
        )

        parent.udp.tell("n01", msgspec.structs.replace(HELLO, updates=updates))
        await until(lambda: len(child.heard) == 4)

        assert tuple(one for message in child.heard for one in message.updates) == updates


@pytest.mark.parametrize("saved", [0xB1, None])
async def test_a_restarted_child_is_heard_at_its_first_hello(saved: int | None) -> None:
    async with met() as (stage, parent, child):
        child.udp.close()
        again = stage.end(0xA2, child.address[1])
        again.know("parent", CHILD, parent.address, saved)

        again.udp.tell("parent", HELLO)
        await until(lambda: len(parent.heard) == 2)

        assert parent.moved[-1] == ("n01", child.address, 0xA2)
        assert [event.boot for event in parent.events if isinstance(event, Heard)] == [0xA1, 0xA2]


async def test_a_restarted_parent_hears_the_next_hello_of_its_child() -> None:
    async with met() as (stage, parent, child):
        parent.udp.close()
        again = stage.end(0xB2, parent.address[1])
        again.know("n01", PARENT, child.address, saved=0xA1)

        child.udp.tell("parent", HELLO)
        await until(lambda: again.heard == [HELLO])

        assert again.moved == []  # nothing that was not saved
        assert child.moved[-1] == ("parent", parent.address, 0xB2)


async def test_a_peer_is_followed_to_where_it_was_accepted_from() -> None:
    async with met() as (stage, parent, child):
        elsewhere = stage.end(child.boot)
        elsewhere.udp.add("parent", child.sessions["parent"], parent.address)

        elsewhere.udp.tell("parent", CHANGED)
        await until(lambda: parent.heard == [HELLO, CHANGED])
        parent.udp.tell("n01", CHANGED)
        await until(lambda: elsewhere.heard == [CHANGED])

        assert parent.moved[-1] == ("n01", elsewhere.address, 0xA1)


async def test_who_is_not_authentic_gets_no_answer_and_moves_nobody() -> None:
    async with met() as (_, parent, child):
        moved = list(parent.moved)
        sealed = child.sessions["parent"].seal(encode(CHANGED, CODEC, 77)[0])
        forged = sealed[:-1] + bytes([sealed[-1] ^ 1])
        with stranger() as attacker:
            for datagram in (b"", b"x" * 24, b"x" * 1300, sealed + b"x" * 1200, forged):
                attacker.sendto(datagram, parent.address)
            child.udp.tell("parent", HELLO)
            await until(lambda: len(parent.alive) > 0)
            assert_got_nothing(attacker)

        assert (parent.moved, parent.heard) == (moved, [HELLO])
        assert parent.udp.counts == {
            FrameFault.INDEX: 3,
            FrameFault.LENGTH: 1,
            FrameFault.FORGED: 1,
        }


async def test_a_restarted_child_is_heard_at_once_whoever_forges_boot_ids_elsewhere() -> None:
    async with met() as (stage, parent, child):
        child.udp.close()
        again = stage.end(0xA2, child.address[1])
        again.know("parent", CHILD, parent.address, saved=parent.boot)
        index = parent.sessions["n01"].own_index
        with stranger() as attacker:
            for boot in range(1, DERIVATIONS_PER_S_MAX + 50):
                header = pack_header(
                    Header(DatagramType.HELLO, Suite.CHACHA20_POLY1305, index, boot << 32, 1)
                )
                attacker.sendto(header + b"x" * 64, parent.address)
            again.udp.tell("parent", CHANGED)
            await until(lambda: parent.heard == [HELLO, CHANGED])
        refused = parent.udp.counts[FrameFault.BUDGET] + parent.udp.counts["beyond its share"]
        assert refused > 0


async def test_a_recorded_datagram_is_answered_to_the_address_on_record_only() -> None:
    async with met() as (stage, parent, child):
        recorded = child.sessions["parent"].seal(encode(CHANGED, CODEC, 77)[0])
        parent.udp.close()
        again = stage.end(0xB2, parent.address[1])
        again.know("n01", PARENT, child.address, saved=0xA1)
        with stranger() as attacker:
            attacker.sendto(recorded, again.address)
            # The `hi` goes to the child, which so finds its parent's new process.
            await until(lambda: len(again.heard) > 0)
            assert_got_nothing(attacker)

        assert again.heard == [HELLO]
        assert again.moved == []


async def test_nobody_listening_there_stops_nothing() -> None:
    async with met() as (stage, parent, child):
        gone = stage.end(0xA2)
        gone.udp.close()
        parent.know("n02", PARENT, gone.address, number=1)
        parent.know("n03", PARENT, ("127.0.0.1", 0), number=2)  # cannot even be sent to

        for peer in ("n02", "n03", "n04"):
            parent.udp.tell(peer, HELLO)
        child.udp.tell("parent", CHANGED)
        await until(lambda: parent.heard == [HELLO, CHANGED])

        assert parent.udp.counts["not sent"] == 1
        assert parent.udp.counts["no session"] == 1


async def test_a_burst_larger_than_a_drain_is_taken_in_several() -> None:
    async with met() as (_, parent, child):
        with stranger() as noisy:
            for _ in range(DRAIN_DATAGRAMS_MAX + 100):
                noisy.sendto(b"x" * 64, parent.address)
        child.udp.tell("parent", CHANGED)

        await until(lambda: parent.heard == [HELLO, CHANGED])
        assert parent.udp.counts[FrameFault.INDEX] == DRAIN_DATAGRAMS_MAX + 100


async def test_who_sends_more_than_can_be_opened_loses_its_own_and_nobody_elses() -> None:
    """All that waits is read before seals are opened, and then each peer has its turn."""
    async with staged() as stage:
        parent, child, other = await with_another(stage)
        recorded = child.sessions["parent"].seal(encode(HELLO, CODEC, 77)[0])
        forged = recorded[:-8] + bytes(8)
        # From the address on record, from elsewhere, and in the end the two that mean something.
        with stranger() as attacker:
            for _ in range(2 * LINE_MAX):
                child.udp._socket.sendto(forged, parent.address)
                attacker.sendto(forged, parent.address)
        child.udp.tell("parent", CHANGED)
        other.udp.tell("parent", CHANGED)
        await until(lambda: parent.heard == [HELLO, HELLO, CHANGED, CHANGED])

        counts = parent.udp.counts
        assert counts["beyond its share"] > 0
        # Some of the forged ones wait behind what was heard.
        await until(lambda: counts["beyond its share"] + counts[FrameFault.FORGED] == 4 * LINE_MAX)


@pytest.mark.parametrize("copied", [False, True], ids=["what-it-says", "copies-from-elsewhere"])
async def test_a_flood_takes_no_room_in_the_socket_from_others(copied: bool) -> None:
    """The loop has no turn from the first datagram of it to the last: so none is released."""
    async with staged() as stage:
        parent, child, other = await with_another(stage)
        body, session = encode(HELLO, CODEC, 77)[0], child.sessions["parent"]
        copy = session.seal(body)
        child.udp._socket.sendto(copy, parent.address)
        await until(lambda: ("n01",) in parent.alive)
        with stranger() as attacker:

            def flood(count: int) -> None:
                for _ in range(count):
                    if copied:
                        attacker.sendto(copy, parent.address)
                    else:
                        child.udp._socket.sendto(session.seal(body), parent.address)

            for _ in range(ROUNDS_MAX):
                flood(2 * (LINE_MAX + LOST_AT_ONCE_MAX))
                drain(parent)
                if parent.udp.counts["muted"]:
                    break
            parent.udp._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM_BYTES)
            flood(ROOM_BYTES)
            other.udp.tell("parent", CHANGED)
            flood(ROOM_BYTES)
        assert parent.udp.counts["muted"] == 1
        await until(lambda: parent.heard == [HELLO, HELLO, CHANGED])

        def heard_again() -> bool:
            child.udp.tell("parent", CHANGED)
            return len(parent.heard) > 3

        await until(heard_again)


async def test_who_is_flooded_in_the_name_of_a_node_does_not_mute_it() -> None:
    async with met() as (_, parent, child):
        forged = child.sessions["parent"].seal(encode(HELLO, CODEC, 77)[0])[:-8] + bytes(8)

        def muted() -> int:
            for _ in range(2 * (LINE_MAX + LOST_AT_ONCE_MAX)):
                child.udp._socket.sendto(forged, parent.address)
            drain(parent)
            return parent.udp.counts["muted"]

        # Once at most, as long as nobody has seen what it is that comes from there.
        at_first = muted()
        await until(lambda: parent.udp.counts[FrameFault.FORGED] >= LINE_MAX)

        def heard_again() -> bool:
            child.udp.tell("parent", CHANGED)
            return CHANGED in parent.heard

        await until(heard_again)
        assert [muted() for _ in range(3)] == [at_first] * 3


def drain(end: End) -> None:
    while select.select([end.udp._socket], [], [], 0)[0]:
        end.udp._drain()


async def test_of_a_peer_that_floods_the_newest_is_heard_and_of_the_others_all() -> None:
    async with staged() as stage:
        parent, child, other = await with_another(stage)
        parent.events.clear()

        def of(peer: str) -> list[Message]:
            events = parent.events[-10:]
            return [one.message for one in events if isinstance(one, Heard) and one.peer == peer]

        begun, last = clock.now_ns(), 20 * CHANGED_AT_ONCE_MAX
        for version in range(1, last + 1):
            told = msgspec.structs.replace(HELLO, desired=Mark(1, version, 2))
            child.udp.tell("parent", told)
            if version % 1_000 == 0:
                other.udp.tell("parent", told)
                await asyncio.sleep(0)
        heard: dict[str, list[int]] = {"n01": [], "n02": []}

        def heard_at_last() -> bool:
            child.udp.tell("parent", told)  # again, as agents do: what is muted is lost
            return told in of("n01")

        await until(heard_at_last)
        for event in parent.events:
            if isinstance(event, Heard):
                heard[event.peer].append(event.message.desired.version)
        assert heard["n02"] == list(range(1_000, last + 1, 1_000))
        assert heard["n01"] == sorted(heard["n01"])
        took_s = (clock.now_ns() - begun) / 1e9
        assert len(heard["n01"]) <= CHANGED_AT_ONCE_MAX + CHANGED_PER_S * took_s + 1


async def test_nothing_is_read_while_the_inbox_is_full() -> None:
    async with staged() as stage:
        waiting = [INBOX_MAX]
        parent, child = stage.pair(lambda: waiting[0])
        child.udp.tell("parent", HELLO)
        await until(lambda: parent.udp.counts["inbox full"] > 1)
        assert parent.events == []
        waiting[0] = 0
        await meet(parent, child)


async def test_a_new_session_ends_the_one_before_it() -> None:
    async with met() as (_, parent, child):
        old = child.sessions["parent"]
        parent.know("n01", PARENT, child.address, number=1)
        child.know("parent", CHILD, parent.address, number=1)
        with stranger() as late:
            late.sendto(old.seal(encode(CHANGED, CODEC, 77)[0]), parent.address)
        child.udp.tell("parent", HELLO)
        await until(lambda: len(parent.heard) == 2)

        assert parent.heard == [HELLO, HELLO]
        assert parent.udp.counts[FrameFault.INDEX] == 1
        parent.udp.remove("n01")
        child.udp.tell("parent", HELLO)
        await until(lambda: parent.udp.counts[FrameFault.INDEX] == 2)


def test_a_session_that_is_silent_takes_little_memory() -> None:
    with contextlib.closing(Udp.bind(HOST, 0)) as udp:
        tracemalloc.start()
        for number in range(1, SILENT + 1):
            agreement = Agreement(bytes(32), UUID(int=1), UUID(int=2), 1, number, number)
            udp.add(f"n{number}", Session(agreement, SealRole.PARENT, 1), (HOST, 1))
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert taken / SILENT < SILENT_BYTES_MAX
