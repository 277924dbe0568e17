import asyncio
import dataclasses
import fcntl
import os
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from haptera.keeping.home import ServiceProcess, ServiceRecord
from haptera.keeping.services import (
    Service,
    let_be,
    look_applied,
    look_run,
    replace,
    start,
    stop,
    watch_run,
)
from haptera.kinds import service
from haptera.kinds.service import Run
from haptera.model.entity import EntityId
from haptera.model.parts import ANY, Change, Requirement
from haptera.modules.service import module as under_test
from haptera.modules.service.module import connect
from haptera.runtime import clock
from haptera.runtime.processes.forking import PRELOAD, exec_zygote
from haptera.runtime.processes.process import LIMITS
from haptera.sdk import Refused, Target
from haptera.wire.frame import Reject
from haptera.wire.ipc import Frames, encode_frame
from tests.lab.rig import until
from tests.network import NETWORK

pytestmark = pytest.mark.net

WAIT_S = 60
# Where nobody else takes a port that was free.
ADDRESS = f"{NETWORK}.52.1"
PYTHON = shlex.quote(sys.executable)
SLEEP = f"{PYTHON} -I -S -c 'import signal; signal.pause()'"
# Says when it would hear a SIGTERM, and does not.
DEAF = (
    f"{PYTHON} -I -c 'import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    ' open("deaf", "w").close(); signal.pause()\''
)


@pytest.fixture
def ended_after() -> Iterator[list[ServiceProcess]]:
    """Processes that end with the test, whatever comes of it."""
    processes: list[ServiceProcess] = []
    yield processes
    for process in processes:
        if (pidfd := process.open()) is not None:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)


@pytest.fixture
def web(tmp_path: Path, ended_after: list[ServiceProcess]) -> Iterator[Callable[..., Service]]:
    """Makes services named `web` that run a command; at the end none is left."""

    def make(command: str = SLEEP, digest: str = "d1") -> Service:
        return a_service(tmp_path, command, digest)

    yield make
    record = make().home.record()
    if record is not None:
        ended_after += [record.service, record.keeper]


def a_service(run_dir: Path, command: str, digest: str) -> Service:
    return connect(
        Target(
            EntityId("service", "web", "n01"),
            attributes={"node.address": "127.9.0.1"},
            values={"command": command, "port": 8080},
            digest=digest,
            run_dir=run_dir,
        )
    )


def record_of(one: Service) -> ServiceRecord:
    record = one.home.record()
    assert record is not None
    return record


def test_a_service_that_was_never_started_is_stopped(web: Callable[..., Service]) -> None:
    assert asyncio.run(look_run(web())) is Run.STOPPED


def test_a_started_service_runs_with_the_digest_it_was_started_with(
    web: Callable[..., Service],
) -> None:
    asyncio.run(start(web()))

    assert asyncio.run(look_run(web())) is Run.RUNNING
    assert asyncio.run(look_applied(web(digest="d2"))) == "d1"


def test_a_service_finds_its_place_in_its_environment(
    web: Callable[..., Service], tmp_path: Path
) -> None:
    one = web("env")
    asyncio.run(start(one))
    asyncio.run(record_ends(record_of(one).keeper))

    assert sorted((one.home.path / "output.log").read_text().splitlines()) == [
        "HAPTERA_ADDRESS=127.9.0.1",
        f"HAPTERA_JOBS={tmp_path}/jobs/open/gate",
        "HAPTERA_NODE=n01",
        "HAPTERA_PORT=8080",
        "HAPTERA_SERVICE=web",
        "HAPTERA_STARTS=1",
        f"PATH={os.environ['PATH']}",
    ]


@pytest.mark.parametrize(
    ("command", "run", "note"),
    [
        ("true", Run.STOPPED, None),
        ("sh -c 'exit 3'", Run.FAILED, "it ended with status 3"),
        (
            "sh -c 'echo began; echo \"bind: address in use\" >&2; echo; exit 3'",
            Run.FAILED,
            "it ended with status 3: bind: address in use",
        ),
        ("sh -c 'kill -9 $$'", Run.FAILED, "it was killed by SIGKILL"),
    ],
)
def test_how_a_service_ended_says_whether_it_failed(
    web: Callable[..., Service], command: str, run: Run, note: str | None
) -> None:
    one = web(command)
    asyncio.run(start(one))
    asyncio.run(record_ends(record_of(one).service))

    assert (asyncio.run(look_run(one)), one.target.take_note()) == (run, note)


def test_a_command_that_is_not_there_is_refused_in_the_words_of_the_spawn(
    web: Callable[..., Service],
) -> None:
    one = web("/no/such/thing --now")
    with pytest.raises(Refused, match=r"^/no/such/thing: No such file or directory$"):
        asyncio.run(start(one))
    assert one.home.output.read_text() == "/no/such/thing: No such file or directory\n"


def test_a_service_that_runs_is_not_stopped_for_a_command_that_is_not_there(
    web: Callable[..., Service],
) -> None:
    asyncio.run(start(web()))
    with pytest.raises(Refused, match="there is no such command"):
        asyncio.run(replace(web("/no/such/thing", digest="d2")))
    assert asyncio.run(look_run(web())) is Run.RUNNING


def test_a_port_that_somebody_has_is_not_started_at(web: Callable[..., Service]) -> None:
    with socket.create_server((ADDRESS, 0)) as other:
        place = {"attributes": {"node.address": ADDRESS}}
        one = web()
        values = {**one.target.values, "port": other.getsockname()[1]}
        taken = connect(dataclasses.replace(one.target, values=values, **place))
        with pytest.raises(Refused, match=f"is taken already, at {ADDRESS}"):
            asyncio.run(start(taken))
    assert asyncio.run(look_run(web())) is Run.STOPPED
    asyncio.run(start(taken))
    assert asyncio.run(look_run(web())) is Run.RUNNING


def test_a_watch_tells_of_a_death_that_came_before_it_saw_the_service_run(
    web: Callable[..., Service],
) -> None:
    """It had failed before, and has failed again: of that nothing else would tell at once."""

    async def scenario() -> list[Run]:
        one, told = web("false"), []
        await start(one)
        await record_ends(record_of(one).keeper)
        watch = watch_run(one)
        told.append(await anext(watch))
        await start(one)
        await record_ends(record_of(one).keeper)
        async with asyncio.timeout(WAIT_S):
            told.append(await anext(watch))
        return told

    assert asyncio.run(scenario()) == [Run.FAILED, Run.FAILED]


def test_a_failure_that_nobody_wants_mended_is_over_but_does_not_excuse_the_next(
    web: Callable[..., Service],
) -> None:
    one = web("false")
    asyncio.run(start(one))
    asyncio.run(record_ends(record_of(one).keeper))
    asyncio.run(let_be(one))

    assert asyncio.run(look_run(one)) is Run.STOPPED
    asyncio.run(start(one))
    asyncio.run(record_ends(record_of(one).keeper))
    assert asyncio.run(look_run(one)) is Run.FAILED


def test_a_service_that_is_stopped_did_not_fail(web: Callable[..., Service]) -> None:
    asyncio.run(start(web()))
    asyncio.run(stop(web()))

    assert asyncio.run(look_run(web())) is Run.STOPPED
    assert not record_of(web()).keeper.lives


@pytest.mark.slow
def test_a_service_that_does_not_hear_is_killed(web: Callable[..., Service]) -> None:
    one = web(DEAF)
    asyncio.run(start(one))
    asyncio.run(until(lambda: (one.home.path / "deaf").exists()))
    asyncio.run(stop(one))

    assert asyncio.run(look_run(one)) is Run.STOPPED


def test_what_a_service_started_is_stopped_with_it(web: Callable[..., Service]) -> None:
    one = web("sh -c 'sleep 1000 & echo $! >child.new; mv child.new child; wait'")
    asyncio.run(start(one))
    child = asyncio.run(until(lambda: read_pid(one.home.path / "child")))
    pidfd = os.pidfd_open(child)
    asyncio.run(stop(one))

    asyncio.run(readable(pidfd))
    os.close(pidfd)


@pytest.mark.parametrize("mode", ["true", "set -m"])
def test_what_a_service_leaves_behind_when_it_dies_is_killed(
    web: Callable[..., Service], mode: str
) -> None:
    """Also what has a process group of its own, as a shell's job control makes it."""
    one = web(f"bash -c '{mode}; sleep 1000 & echo $! >child.new; mv child.new child; wait'")
    asyncio.run(start(one))
    child = asyncio.run(until(lambda: read_pid(one.home.path / "child")))
    pidfd = os.pidfd_open(child)
    os.kill(record_of(one).service.pid, signal.SIGKILL)

    asyncio.run(readable(pidfd))
    os.close(pidfd)
    assert asyncio.run(look_run(one)) is Run.FAILED


def test_a_replaced_service_runs_anew_with_what_is_desired(web: Callable[..., Service]) -> None:
    asyncio.run(start(web()))
    before = record_of(web())
    asyncio.run(replace(web(digest="d2")))

    assert asyncio.run(look_applied(web())) == "d2"
    assert record_of(web()).service != before.service
    assert not before.service.lives


def test_a_service_is_not_stopped_for_one_that_cannot_run(web: Callable[..., Service]) -> None:
    asyncio.run(start(web()))
    with pytest.raises(Refused, match="cannot be split into words"):
        asyncio.run(replace(web("echo 'unclosed", digest="d2")))

    assert asyncio.run(look_run(web())) is Run.RUNNING


def test_two_starts_at_once_start_one(web: Callable[..., Service]) -> None:
    one = web("sh -c 'echo $$ >>started; exec sleep 1000'")

    async def twice() -> None:
        await asyncio.gather(*(start(one) for _ in range(6)))

    asyncio.run(twice())
    # It is there before its first line is.
    started = asyncio.run(until(lambda: _read(one.home.path / "started")))

    assert started.split() == [str(record_of(one).service.pid)]


def test_nothing_is_started_while_another_keeper_is_about_to(
    web: Callable[..., Service],
) -> None:
    one = web()
    one.home.make()
    with (one.home.path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asyncio.run(start(one))

    assert asyncio.run(look_run(one)) is Run.STOPPED


def test_a_command_that_is_nowhere_fails_with_its_name(web: Callable[..., Service]) -> None:
    one = web("no-such-command --at-all")
    with pytest.raises(Refused, match="no-such-command: No such file or directory"):
        asyncio.run(start(one))

    assert asyncio.run(look_run(one)) is Run.FAILED


def test_nothing_is_started_without_a_command(web: Callable[..., Service]) -> None:
    with pytest.raises(Refused, match="no command is desired"):
        asyncio.run(start(web("")))

    assert asyncio.run(look_run(web())) is Run.STOPPED


def test_a_service_outlives_its_keeper_and_is_not_started_twice(
    web: Callable[..., Service],
) -> None:
    asyncio.run(start(web()))
    record = record_of(web())
    os.kill(record.keeper.pid, signal.SIGKILL)
    asyncio.run(record_ends(record.keeper))
    asyncio.run(start(web()))

    assert asyncio.run(look_run(web())) is Run.RUNNING
    assert record_of(web()) == record


def test_an_end_that_no_keeper_saw_counts_as_a_failure_and_can_be_mended(
    web: Callable[..., Service],
) -> None:
    asyncio.run(start(web()))
    record = record_of(web())
    for process in (record.keeper, record.service):
        os.kill(process.pid, signal.SIGKILL)
        asyncio.run(record_ends(process))

    assert asyncio.run(look_run(web())) is Run.FAILED
    asyncio.run(start(web()))
    assert asyncio.run(look_run(web())) is Run.RUNNING


def test_a_service_without_keeper_is_stopped_all_the_same(web: Callable[..., Service]) -> None:
    asyncio.run(start(web()))
    record = record_of(web())
    os.kill(record.keeper.pid, signal.SIGKILL)
    asyncio.run(stop(web()))

    assert asyncio.run(look_run(web())) is Run.STOPPED
    assert not record.service.lives


def test_what_ran_before_the_machine_was_booted_is_stopped(web: Callable[..., Service]) -> None:
    asyncio.run(start(web()))
    state = web().home.path / "state"
    lines = state.read_text().splitlines(keepends=True)
    record = record_of(web())
    state.write_text("".join(["boot another-boot\n", *lines[1:]]))

    assert asyncio.run(look_run(web())) is Run.STOPPED
    os.kill(record.service.pid, signal.SIGKILL)
    asyncio.run(record_ends(record.keeper))


def test_another_process_of_the_same_number_is_not_taken_for_the_service(tmp_path: Path) -> None:
    one = a_service(tmp_path, SLEEP, "d1")
    one.home.make()
    boot = clock.kernel_boot()
    (one.home.path / "state").write_text(
        f"boot {boot}\nservice {os.getpid()} 1\nkeeper {os.getpid()} 1\ndigest d1\n"
    )

    assert asyncio.run(look_run(one)) is Run.FAILED
    asyncio.run(stop(one))


def test_a_watch_tells_each_change_once(web: Callable[..., Service]) -> None:
    async def scenario() -> list[Run]:
        one = web()
        sightings = watch_run(one)
        seen = [await following(sightings)]
        await start(one)
        seen.append(await following(sightings))
        os.kill(record_of(one).service.pid, signal.SIGKILL)
        seen.append(await following(sightings))
        await start(one)
        seen.append(await following(sightings))
        await stop(one)
        seen.append(await following(sightings))
        return seen

    assert asyncio.run(scenario()) == [
        Run.STOPPED,
        Run.RUNNING,
        Run.FAILED,
        Run.RUNNING,
        Run.STOPPED,
    ]


def test_a_killed_module_kills_no_service_and_the_next_one_adopts_it(
    web: Callable[..., Service], tmp_path: Path
) -> None:
    zygote = exec_zygote(PRELOAD)
    first = Ask(zygote, tmp_path)
    assert first.call(1, "step", "start") == {"op": "ended", "id": 1}
    record = record_of(web())
    os.kill(first.pid, signal.SIGKILL)
    first.close()
    # With the zygote, which was the last of those that the service descends from.
    zygote.close()

    assert (record.service.lives, record.keeper.lives) == (True, True)
    zygote = exec_zygote(PRELOAD)
    second = Ask(zygote, tmp_path)
    answer = second.call(2, "look", "look_run")
    assert (answer["op"], answer["value"]) == ("answered", "running")
    assert second.call(3, "step", "start") == {"op": "ended", "id": 3}
    assert record_of(web()) == record
    assert second.call(4, "step", "stop") == {"op": "ended", "id": 4}
    assert not record.service.lives
    second.close()
    zygote.close()


def test_the_manifest_is_as_the_kind_and_its_neighbours_expect() -> None:
    manifest = under_test.module.manifest()
    up = Requirement("node.agent", ("up",))
    running = Requirement("run", ("running", "unready"))

    assert [(look.name, look.at, look.outcomes, look.watched) for look in manifest.looks] == [
        ("look_run", "run", ("stopped", "running", "failed", "unready"), True),
        ("look_applied", "applied", ("stale", "current"), False),
    ]
    assert [look.requires for look in manifest.looks] == [(up,), (running, up)]
    assert {step.name: step.changes for step in manifest.steps} == {
        "start": (
            Change("run", ("stopped", "failed"), "running"),
            Change("applied", (ANY,), "current", expected=True),
        ),
        "await_answer": (Change("run", ("unready",), "running"),),
        "stop": (Change("run", ("running", "unready"), "stopped"),),
        "let_be": (Change("run", ("failed",), "stopped"),),
        "replace": (Change("applied", ("stale",), "current", expected=True),),
    }
    assert {part.kind for part in manifest.parts} == {service.kind.name}
    late = {step.name: step.late_ms for step in manifest.steps}
    assert late.pop("await_answer") == 60_000
    assert {*late.values()} == {2_000}


class Ask:
    """A module's process, asked by hand."""

    def __init__(self, zygote: Any, run_dir: Path) -> None:
        self._link, theirs = socket.socketpair()
        self._link.settimeout(WAIT_S)
        self._frames = Frames()
        self._run_dir = run_dir
        arguments = {
            "name": "service",
            "place": "haptera.modules.service.module:module",
            "folder": None,
            "memory_bytes_max": LIMITS.memory_bytes_max,
        }
        with theirs:
            child = zygote.fork(
                "haptera.runtime.processes.fork_targets:module_process",
                arguments,
                (theirs.fileno(),),
            )
        os.close(child.pidfd)
        self.pid = child.pid
        begin = {"op": "begin", "module": "service", "settings": {}, "run_dir": str(run_dir)}
        self._link.sendall(encode_frame(begin))
        assert self._answer()["op"] == "ready"

    def call(self, id: int, work: str, part: str) -> dict[str, Any]:
        frame = {
            "op": "call",
            "id": id,
            "work": work,
            "part": part,
            "entity": {"kind": "service", "name": "web", "node": "n01"},
            "attributes": {},
            "values": {"command": SLEEP},
            "digest": "d1",
            "deadline_ns": None,
            "intent": None,
            "boot": None,
        }
        self._link.sendall(encode_frame(frame))
        return self._answer()

    def close(self) -> None:
        self._link.close()

    def _answer(self) -> dict[str, Any]:
        """The next frame; the module sends one at a time here."""
        while True:
            frames = self._frames.feed(self._link.recv(65_536))
            assert not isinstance(frames, Reject)
            if frames:
                (frame,) = frames
                return frame


async def following(sightings: AsyncIterator[Run]) -> Run:
    async with asyncio.timeout(WAIT_S):
        return await anext(sightings)


async def record_ends(process: ServiceProcess) -> None:
    assert await process.ends(WAIT_S)


async def readable(descriptor: int) -> None:
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, is_readable.set)
    async with asyncio.timeout(WAIT_S):
        await is_readable.wait()
    loop.remove_reader(descriptor)


def read_pid(path: Path) -> int | None:
    return int(text) if (text := _read(path)) else None


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
