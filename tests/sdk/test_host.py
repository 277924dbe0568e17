import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from haptera.kinds import node, service
from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.model.parts import DRAIN_S_MAX
from haptera.sdk import Applied, Boot, Draining, HapteraError, Manifest, Module, Refused, Target
from haptera.sdk.failures import TEXT_BYTES_MAX
from haptera.sdk.host import HANGING_MAX, NOTE_BYTES_MAX, serve
from haptera.wire.frame import Reject
from haptera.wire.ipc import Frames, encode_frame

WAIT_S = 60
NOW = 1_000_000_000


@dataclass
class Device:
    """What the functions below are handed; all its orders are kept."""

    orders: list[str] = field(default_factory=list)
    open: int = 0
    reading: str = "on"
    busy: bool = False
    drains: bool = False
    clings: bool = False
    target: Target = field(default_factory=lambda: Target(node_id("n01")))
    go: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def press(self) -> None:
        """Wait until it may go on; a device that clings does so though it is cancelled."""
        self.began.set()
        while not self.go.is_set():
            with suppress(asyncio.CancelledError) if self.clings else nullcontext():
                await self.go.wait()

    def note(self) -> None:
        if (age_s := self.target.attributes.get("age")) is not None:
            self.target.age(float(age_s))
        if self.target.attributes.get("fuse"):
            self.target.note("the fuse blew " + "x" * NOTE_BYTES_MAX)


def module_on(device: Device) -> Module[Device]:  # noqa: C901  its functions, one by one
    @asynccontextmanager
    async def connect(target: Target) -> AsyncIterator[Device]:
        device.open += 1
        if target.attributes.get("slow"):
            await device.go.wait()
        device.target = target
        try:
            yield device
        finally:
            device.open -= 1
            device.left.set()

    module = Module("trial", connect=connect, version="7")
    power = module.serves(node.power)

    @power.look(outcomes=(Power.OFF, Power.ON))
    async def look(device: Device) -> Power:
        device.note()
        return Power(device.reading)

    @power.watch
    async def watch(device: Device) -> AsyncIterator[Power]:
        yield Power.OFF
        yield Power.ON
        await asyncio.Event().wait()

    @power.step(Power.OFF, Power.ON, within_s=1)
    async def switch_on(device: Device) -> None:
        await device.press()
        device.orders.append("on")

    @power.step(Power.ON, Power.OFF, within_s=1)
    async def switch_off(device: Device) -> None:
        raise Refused("the key is turned")

    @module.hold
    async def keep_out(device: Device) -> None:
        device.began.set()
        await device.go.wait()
        if device.busy:
            raise Refused("2 jobs run")
        if device.drains:
            raise Draining("2 jobs run on")
        device.orders.append("hold")

    @module.release
    async def let_in(device: Device) -> None:
        device.orders.append("release")

    return module


BEGIN = {"op": "begin", "module": "trial", "settings": {"pause_s": 2}, "run_dir": "/run/trial"}


@dataclass
class Daemon:
    """The other side of the link."""

    link: socket.socket
    device: Device
    _frames: Frames = field(default_factory=Frames)
    _arrived: list[dict[str, Any]] = field(default_factory=list)

    async def send(self, *frames: dict[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.link, b"".join(map(encode_frame, frames)))

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_S):
            while not self._arrived:
                data = await asyncio.get_running_loop().sock_recv(self.link, 65_536)
                assert data, "the host hung up"
                fed = self._frames.feed(data)
                assert not isinstance(fed, Reject)
                self._arrived += fed
        return self._arrived.pop(0)


@asynccontextmanager
async def hosted(
    run_dir: Path = Path("/run/trial"),
    module_of: Callable[[Device], Module[Any]] = module_on,
    now: Callable[[], int] = lambda: NOW,
) -> AsyncIterator[Daemon]:
    """A host that serves the other side; it ends when that hangs up."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    daemon = Daemon(ours, Device())
    module = module_of(daemon.device)
    serving = serve(module, theirs, now=now, wall_s=lambda: 0)
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(serving)
        with ours:
            await daemon.send({**BEGIN, "run_dir": str(run_dir)})
            ready = await daemon.next()
            assert msgspec.convert(ready.pop("manifest"), Manifest) == module.manifest()
            assert ready == {"op": "ready", "module": "trial", "version": "7"}
            yield daemon


def a_call(id: int, work: str, part: str, **changes: Any) -> dict[str, Any]:
    return {
        "op": "call",
        "id": id,
        "work": work,
        "part": part,
        "entity": {"kind": "node", "name": "n01", "node": "n01"},
        "attributes": {},
        "values": {},
        "digest": "",
        "deadline_ns": NOW + 1,
        "intent": None,
        "boot": None,
        **changes,
    }


def failed(id: int, text: str, *, refused: bool) -> dict[str, Any]:
    return {"op": "failed", "id": id, "text": text, "refused": refused}


async def test_a_look_answers_what_it_found_and_when_it_began() -> None:
    async with hosted() as daemon:
        await daemon.send(a_call(1, "look", "look"))
        assert await daemon.next() == {"op": "answered", "id": 1, "value": "on", "at_ns": NOW}
    assert daemon.device.open == 0


async def test_what_a_look_notes_besides_the_value_is_told_cut_to_its_room() -> None:
    async with hosted() as daemon:
        await daemon.send(a_call(1, "look", "look", attributes={"fuse": "f1"}))
        note = "the fuse blew " + "x" * (NOTE_BYTES_MAX - 14)
        found = {"op": "answered", "id": 1, "value": "on", "at_ns": NOW, "note": note}
        assert await daemon.next() == found


async def test_a_look_says_how_old_what_it_tells_is_and_each_by_itself() -> None:
    async with hosted() as daemon:
        await daemon.send(a_call(1, "look", "look", attributes={"age": "0.25"}))
        told = {"op": "answered", "value": "on"}
        assert await daemon.next() == {**told, "id": 1, "at_ns": NOW - 250_000_000}
        await daemon.send(a_call(2, "look", "look"))
        assert await daemon.next() == {**told, "id": 2, "at_ns": NOW}
        await daemon.send(a_call(3, "look", "look", attributes={"age": "-1"}))
        text = "ValueError: the age of a reading cannot be -1.0 s"
        assert await daemon.next() == failed(3, text, refused=False)


async def test_what_is_not_among_a_looks_outcomes_is_no_reading() -> None:
    async with hosted() as daemon:
        daemon.device.reading = "hung"
        await daemon.send(a_call(1, "look", "look"))
        text = "look found 'hung', which is not among its outcomes"
        assert await daemon.next() == failed(1, text, refused=False)


async def test_what_a_look_finds_in_force_is_a_digest_and_no_judgement() -> None:
    answers = {"judges": "current", "long": 65 * "a", "digest": 64 * "a"}
    module: Module[str] = Module("trial", connect=lambda one: answers[one.name], version="7")
    applied = module.serves(service.applied)

    @applied.look(outcomes=(Applied.STALE, Applied.CURRENT))
    async def look(answer: str) -> str:
        return answer

    async with hosted(module_of=lambda _: module) as daemon:
        found = list[str | None]()
        for number, name in enumerate(answers):
            entity = {"kind": "service", "name": name, "node": "n01"}
            await daemon.send(a_call(number, "look", "look", entity=entity))
            answer = await daemon.next()
            found.append(answer.get("text"))
        do = "answer the digest of the desired data that are in force"
        judges = f"look found 'current', which is no digest: {do}"
        assert found == [judges, "look found a digest of over 64 bytes", None]


async def test_a_call_whose_deadline_has_passed_is_not_begun() -> None:
    async with hosted() as daemon:
        daemon.device.go.set()
        await daemon.send(a_call(1, "step", "switch_on", deadline_ns=NOW - 5_000_000))
        text = "not started: its deadline had passed 5 ms before"
        assert await daemon.next() == failed(1, text, refused=True)
    assert daemon.device.orders == []


async def test_the_deadline_is_checked_after_connecting() -> None:
    """A connection that takes its time must not make a step act late."""
    times = [NOW]
    async with hosted(now=lambda: times[-1]) as daemon:
        await daemon.send(a_call(1, "step", "switch_on", attributes={"slow": "yes"}))
        await daemon.send(a_call(2, "look", "look"))
        await daemon.next()
        times.append(NOW + 1)
        daemon.device.go.set()
        text = "not started: its deadline had passed 0 ms before"
        assert await daemon.next() == failed(1, text, refused=True)
    assert daemon.device.orders == []


async def test_a_device_that_refuses_is_told_apart_from_code_that_fails() -> None:
    async with hosted() as daemon:
        daemon.device.reading = "sideways"
        await daemon.send(a_call(1, "step", "switch_off"), a_call(2, "look", "look"))
        assert await daemon.next() == failed(1, "the key is turned", refused=True)
        text = "ValueError: 'sideways' is not a valid Power"
        assert await daemon.next() == failed(2, text, refused=False)


async def test_long_words_are_cut() -> None:
    async with hosted() as daemon:
        daemon.device.reading = "ü" * TEXT_BYTES_MAX
        await daemon.send(a_call(1, "look", "look"))
        text = (await daemon.next())["text"]
        assert 0 < len(text.encode()) <= TEXT_BYTES_MAX


async def test_a_step_that_has_begun_is_not_cancelled_but_its_answer_is_not_sent() -> None:
    async with hosted() as daemon:
        await daemon.send(a_call(1, "step", "switch_on", deadline_ns=NOW + 60 * NOW))
        await daemon.device.began.wait()
        await daemon.send({"op": "cancel", "id": 1}, a_call(2, "look", "look"))
        assert (await daemon.next())["id"] == 2
        daemon.device.go.set()
        await daemon.send(a_call(3, "look", "look"))
        assert (await daemon.next())["id"] == 3
    assert daemon.device.orders == ["on"]


async def test_a_step_that_has_not_begun_is_cancelled() -> None:
    async with hosted() as daemon:
        call = a_call(1, "step", "switch_on", attributes={"slow": "yes"})
        await daemon.send(call, {"op": "cancel", "id": 1})
        await daemon.send(a_call(2, "look", "look"))
        assert (await daemon.next())["id"] == 2
        daemon.device.go.set()
    assert daemon.device.orders == []


async def test_a_gate_holds_and_releases() -> None:
    async with hosted() as daemon:
        daemon.device.go.set()
        await daemon.send(a_call(1, "hold", "hold"), a_call(2, "release", "release"))
        assert await daemon.next() == {"op": "ended", "id": 1}
        assert await daemon.next() == {"op": "ended", "id": 2}
    assert daemon.device.orders == ["hold", "release"]


async def test_a_gate_of_a_busy_node_refuses_to_hold() -> None:
    async with hosted() as daemon:
        daemon.device.busy = True
        daemon.device.go.set()
        await daemon.send(a_call(1, "hold", "hold"))
        assert await daemon.next() == failed(1, "2 jobs run", refused=True)
    assert daemon.device.orders == []


async def test_a_gate_that_drains_its_node_says_so() -> None:
    async with hosted() as daemon:
        daemon.device.drains = True
        daemon.device.go.set()
        await daemon.send(a_call(1, "hold", "hold"))
        told = failed(1, "2 jobs run on", refused=False)
        assert await daemon.next() == {**told, "drains": True, "drained_ms": 0}
    assert daemon.device.orders == []


async def test_a_node_that_rests_from_a_drain_is_not_held_but_told_as_drained_for_so_long(
    tmp_path: Path,
) -> None:
    (tmp_path / "undrained").mkdir()
    (tmp_path / "undrained/n01").touch()
    os.utime(tmp_path / "undrained/n01", (0, 0))  # which is now, by this host's wall clock

    async with hosted(tmp_path) as daemon:
        daemon.device.go.set()
        await daemon.send(a_call(1, "hold", "hold"))
        told = failed(1, "it was drained for too long", refused=False)
        week_ms = DRAIN_S_MAX * 1_000
        assert await daemon.next() == {**told, "drains": True, "drained_ms": week_ms}
        await daemon.send(a_call(2, "release", "release"))
        assert await daemon.next() == {"op": "ended", "id": 2}
    assert daemon.device.orders == ["release"]


async def test_a_gate_that_has_begun_to_hold_is_not_cut_short() -> None:
    async with hosted() as daemon:
        await daemon.send(a_call(1, "hold", "hold", deadline_ns=NOW + 60 * NOW))
        await daemon.device.began.wait()
        await daemon.send({"op": "cancel", "id": 1}, a_call(2, "look", "look"))
        assert (await daemon.next())["id"] == 2
        daemon.device.go.set()
        await daemon.send(a_call(3, "look", "look"))
        assert (await daemon.next())["id"] == 3
    assert daemon.device.orders == ["hold"]


async def test_a_gate_has_no_other_parts_than_its_work() -> None:
    async with hosted() as daemon:
        await daemon.send(a_call(1, "hold", "release"))
        assert await daemon.next() == failed(1, "module trial has no hold 'release'", refused=True)
    assert daemon.device.orders == []


async def test_a_watch_reports_until_it_is_cancelled() -> None:
    async with hosted() as daemon:
        await daemon.send(a_call(1, "watch", "look", deadline_ns=None))
        sighted = [await daemon.next(), await daemon.next()]
        assert [(one["op"], one["value"]) for one in sighted] == [
            ("sighted", "off"),
            ("sighted", "on"),
        ]
        await daemon.send({"op": "cancel", "id": 1}, a_call(2, "look", "look"))
        assert (await daemon.next())["id"] == 2


async def test_a_step_that_is_cancelled_is_ended_when_its_time_is_over() -> None:
    async with hosted() as daemon:
        await daemon.send(a_call(1, "step", "switch_on", deadline_ns=NOW + 1))
        await daemon.device.began.wait()
        await daemon.send({"op": "cancel", "id": 1})
        await daemon.device.left.wait()
        daemon.device.go.set()
        await daemon.send(a_call(2, "look", "look"))
        assert (await daemon.next())["id"] == 2
    assert daemon.device.orders == []


async def test_very_many_calls_are_taken_and_watches_beside_them() -> None:
    async with hosted() as daemon:
        await daemon.send(*(a_call(id, "watch", "look", deadline_ns=None) for id in range(1_000)))
        await daemon.send(*(a_call(id, "step", "switch_on") for id in range(1_000, 2_000)))
        daemon.device.go.set()
        said = [await daemon.next() for _ in range(3_000)]
        assert {one["id"] for one in said if one["op"] == "ended"} == {*range(1_000, 2_000)}
        assert {one["id"] for one in said if one["op"] == "sighted"} == {*range(1_000)}


async def test_no_more_calls_are_taken_while_many_hang_that_were_cancelled() -> None:
    async with hosted() as daemon:
        daemon.device.clings = True
        await daemon.send(*(a_call(id, "step", "switch_on") for id in range(HANGING_MAX)))
        await daemon.send({"op": "ping"})
        assert await daemon.next() == {"op": "pong"}
        await daemon.send(*({"op": "cancel", "id": id} for id in range(HANGING_MAX)))
        await daemon.send(a_call(HANGING_MAX, "look", "look"))
        text = f"{HANGING_MAX} calls hang past their limit; no more are accepted"
        assert await daemon.next() == failed(HANGING_MAX, text, refused=True)
        daemon.device.go.set()


async def test_a_part_that_the_module_does_not_have_is_refused() -> None:
    async with hosted() as daemon:
        await daemon.send(a_call(1, "step", "look"))
        assert await daemon.next() == failed(1, "module trial has no step 'look'", refused=True)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff" * 8, "malformed frame from the daemon"),
        (encode_frame({"op": "dance"}), "the daemon asks for 'dance', which is unknown"),
        (encode_frame({"op": "call", "id": "one"}), "malformed call from the daemon: Expect"),
    ],
)
async def test_what_is_no_request_ends_the_host(data: bytes, text: str) -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(ExceptionGroup) as raised:  # noqa: PT012 - raised as the host ends
        async with hosted() as daemon:
            await loop.sock_sendall(daemon.link, data)
            assert await loop.sock_recv(daemon.link, 1) == b""
    assert raised.group_contains(HapteraError, match=text)


def test_a_secret_is_not_shown() -> None:
    assert repr(Boot("secret", "certificate", "127.0.0.1")) == "Boot(parent='127.0.0.1')"
