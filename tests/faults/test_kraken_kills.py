"""What killed or froze the original's daemon, asked of haptera (K1 to K12)."""

import socket
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from haptera.core.state.limits import MS, S
from haptera.model.changes import CloseIntent, Declare, SetDesired, Undeclare
from haptera.model.effects import Cancel, Work, Write
from haptera.model.entity import node_id
from haptera.model.events import Answered, Ended, Failed, Ready, Ticked, WatchReported, Written
from haptera.wire.frame import DATAGRAM_BYTES_MAX
from tests.core.scenario import call, looked, parent, row_of, stored, told
from tests.faults.rig import PARENT_HOST, WEB, Child, Parent, real
from tests.faults.seen import desire, healed, power_commands, view
from tests.faults.simulated import at_rest, deeds, freeze, thaw
from tests.kills.processes import kill, read_process, wait_for
from tests.kills.rig import NODES, Lab, stopped
from tests.world.history import CALM, cluster, web

ALL = ("n1", "n2", "n3", "n4")
N01 = node_id("n01")
WITHIN_S = 60
# Enough changes of enough entities to fill whatever a kernel keeps for one connection.
WIDE_CHANGES_MAX = 60


@real
def test_a_node_that_was_never_heard_of_or_is_heard_still_can_be_deleted(
    served: Parent, child: Child
) -> None:
    """K1, K3: any DELETE of a node, neighbour or not, was the end of the daemon."""
    assert served.ask("DELETE", "/v1/entities/node:n3")[0] == 405
    assert served.ask("PATCH", "/v1/entities/node:n9/desired", {"power": None})[0] == 404
    assert served.apply(served.site("n2"))[0] == 200
    child.report(WEB, run="running")
    child.send_sealed(b"still here")
    assert served.declared() == ["node:n2"]

    assert served.apply(served.site(*ALL))[0] == 200
    served.hears(child)


def test_what_was_at_rest_at_a_thaw_and_drifts_is_mended_again_and_again() -> None:
    """K4: one drift of a node that had converged at a thaw locked the engine against itself."""
    world = at_rest(30)
    for _ in range(3):
        freeze(world)
        thaw(world)
        for name in ("n01", "n02"):
            world.machines[name].services.clear()
        world.machines["n03"].cut()
        world.run(1)
        assert world.settle(60)
    assert [commands for commands, _ in deeds(world)] == [1, 1, 4, 1]


@real
def test_a_module_that_hangs_holds_up_nobody_else(lab: Lab) -> None:
    """K5: a hung module stopped the events of all; killed, it left them stopped for good."""
    commands, owner = power_commands(lab), lab.parent()
    module = lab.module(owner, "labnode")
    webs = [f"service:web@{node}" for node in NODES]
    with stopped(module):
        for web in webs:
            desire(lab, web, port=9100)
        wait_for(
            "they are replaced", lambda: all(_applied(lab, web, 9100) for web in webs), WITHIN_S
        )
        kill(module)
    assert lab.module(owner, "labnode").pid != module.pid
    healed(lab)
    for web in webs:
        desire(lab, web, port=None)
    assert power_commands(lab) == commands


@real
def test_a_listener_that_never_reads_holds_up_nobody_else(served: Parent, child: Child) -> None:
    """K5: one listener that did not take its events stopped those of all others."""
    with _stream(served) as deaf, _stream(served) as other:
        unsent = [0]
        while unsent[-1] == 0 or unsent[-1] > unsent[-2]:  # until the parent itself must wait
            assert len(unsent) < WIDE_CHANGES_MAX
            mark = f"change {len(unsent)} "
            assert served.apply(served.site(*ALL, crowd=mark.ljust(500, "x")))[0] == 200
            _read_until(other, mark.encode())
            unsent.append(_unsent_bytes(deaf))
        assert served.apply(served.site(*ALL))[0] == 200
        _read_until(other, b'"gone":["')
        served.hears(child)


@real
def test_datagrams_that_say_nothing_change_nothing(served: Parent, child: Child) -> None:
    """K6: a sync message with a good seal and nothing in it was the end of the daemon."""
    good = child.session.seal(b"")
    for body in (b"", b"\0", b"\0" * 73, b"\xff" * 74, b"\0" * 74 + b"\xff\xff\xff", b"x" * 1144):
        child.send_sealed(body)
    for datagram in (b"", b"\0", good[:23], good[:24], good[:-1], good + b"\0", b"\xff" * 1200):
        child.send(datagram)
    child.send(bytes(DATAGRAM_BYTES_MAX + 1))
    served.hears(child)


def test_an_answer_to_what_nobody_asked_is_dropped() -> None:
    """K7: a call with the id of no service was the end of the daemon."""
    engine = parent(stored(desired={"power": "on"}))
    told(engine, S, Ready("bmc"))
    strangers = [
        make(number)
        for number in (0, 2, -1, 1 << 70)
        for make in (
            lambda number: Answered(number, "on", S),
            Ended,
            lambda number: Failed(number, "no"),
            lambda number: WatchReported(number, "on", S),
        )
    ]
    assert told(engine, S + MS, *strangers) == []
    assert told(engine, S + MS, Written(99, 9)) == []


@real
def test_deleting_everything_leaves_a_parent_that_takes_it_all_back(
    served: Parent, child: Child
) -> None:
    """K8, W14: it stopped the state engine for good; asked for nothing, the daemon hung up."""
    assert served.apply(served.site())[0] == 200
    assert served.declared() == []
    for query in ("nodes=n[1-3]", "kind=service", "kind=node&nodes=n1"):
        assert served.ask("GET", f"/v1/entities?{query}")[1]["entities"] == []
    assert served.ask("GET", "/v1/summary")[1]["counts"].keys() == {"module"}
    assert served.apply(served.site(*ALL))[0] == 200
    assert served.declared() == [*(f"node:{name}" for name in ALL), str(WEB)]
    served.hears(child)


@pytest.mark.parametrize("answer_first", [True, False])
def test_an_answer_and_its_time_out_in_one_moment_come_to_one_end(answer_first: bool) -> None:
    """K9: progress and time-out took two locks in opposite orders."""
    engine = looked("off", power="on")
    assert told(engine, S, Written(1, 4)) == [call(2, Work.STEP, "switch_on", 3 * S, "a1-1")]
    late, look = 4 * S, call(3, Work.LOOK, "look", 5 * S)
    if answer_first:
        assert told(engine, late, Ended(2), Ticked()) == [look]
    else:
        assert told(engine, late, Ticked()) == [Cancel(2, "bmc"), look]
        assert told(engine, late, Ended(2)) == []
    closed = told(engine, late + MS, Answered(3, "on", late))
    assert closed == [Write(2, (CloseIntent("a1-1"),))]


@pytest.mark.slow
def test_a_node_may_be_deleted_at_any_moment_of_its_boot() -> None:
    """K11: a node deleted while something was under way on it was the end of the daemon."""
    for moment in range(30):
        world = cluster(100 + moment, CALM)
        world.run(moment * 0.1)
        whole = world.parent.disk.entities
        stored_node, stored_web = whole[N01], whole[web("n01")]
        world.propose((Undeclare(web("n01")), Undeclare(N01)))
        world.run(0.3)
        changes = [Declare(N01, stored_node.attributes, "site"), Declare(web("n01"), {}, "site")]
        for one in (stored_node, stored_web):
            changes += [
                SetDesired(one.entity, name, held.value, "site")
                for name, held in one.desired.items()
            ]
        world.propose(changes)
        world.run(1)
        assert world.settle(60), (moment, row_of(world.parent, N01).stance.why)
        for first, second in pairwise(world.machines["n01"].commands):
            assert first.done_at is not None
            assert first.done_at <= second.at


@real
def test_a_killed_parent_leaves_no_module_behind_and_its_port_to_the_next(lab: Lab) -> None:
    """K12: modules outlived the core and kept its port; the next wrote 30 MB of log in 3 s."""
    old = lab.parent()
    module, zygote = lab.module(old, "labnode"), lab.zygote(old, "labnode")
    log = lab.root / "parent" / "serve.log"
    before = log.stat().st_size if log.exists() else 0
    kill(old)
    wait_for("its modules are gone", lambda: not read_process(module.pid), WITHIN_S)
    wait_for("its zygote is gone", lambda: not read_process(zygote.pid), WITHIN_S)
    with closing(lab.api()) as api:
        wait_for("the next one serves", lambda: api.ask("GET", "/v1/summary"), WITHIN_S)
    assert lab.parent().pid != old.pid
    assert log.stat().st_size - before < 64 << 10


def _applied(lab: Lab, service: str, port: int) -> bool:
    seen = view(lab, service)
    return (seen["desired"]["port"]["value"], seen["condition"]) == (port, "converged")


def _stream(served: Parent) -> socket.socket:
    """A connection on which events come, as many as its small buffer takes."""
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.settimeout(WITHIN_S)
    stream.connect((PARENT_HOST, 4270))
    head = f"GET /v1/events HTTP/1.1\r\nHost: {PARENT_HOST}\r\n"
    stream.sendall(f"{head}Authorization: Bearer {served.token}\r\n\r\n".encode())
    return stream


def _read_until(stream: socket.socket, mark: bytes) -> None:
    kept = b""
    while mark not in kept:
        chunk = stream.recv(1 << 20)
        assert chunk
        kept = kept[-len(mark) :] + chunk


def _unsent_bytes(stream: socket.socket) -> int:
    """What waits in the parent's send buffer, by the kernel's account."""
    ends = [_hexadecimal(*stream.getpeername()), _hexadecimal(*stream.getsockname())]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if [local, remote] == ends:
            return int(queues.partition(":")[0], 16)
    raise AssertionError("the parent has hung up")


def _hexadecimal(host: str, port: int) -> str:
    return f"{socket.inet_aton(host)[::-1].hex().upper()}:{port:04X}"
