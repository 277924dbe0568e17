"""A service is as desired once it answers as it says that it does: real sockets and processes."""

import asyncio
import dataclasses
import shlex
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from haptera.keeping.services import Service, await_answer, look_run, start, stop
from haptera.kinds.service import Run, ServiceReady, Way, parse_ready
from haptera.model.errors import HapteraError
from haptera.modules.service.module import connect
from tests.lab.rig import until
from tests.modules.test_service import ADDRESS, ended_after, web

pytestmark = pytest.mark.net
__all__ = ["ended_after", "web"]

# Answers 200 to all but /sick; says nothing before the file `go` is there.
SERVER = """
import http.server, os, sys, time
while not os.path.exists("go"): time.sleep(0.01)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(503 if self.path == "/sick" else 200); self.end_headers()
    def log_message(self, *_): pass
place = os.environ["HAPTERA_ADDRESS"], int(os.environ["HAPTERA_PORT"])
http.server.HTTPServer(place, Handler).serve_forever()
"""
COMMAND = f"{shlex.quote(sys.executable)} -I -c {shlex.quote(SERVER)}"


@pytest.mark.parametrize(
    ("text", "ready"),
    [
        ("http /", ServiceReady(Way.HTTP, "/", None)),
        ("http :81/a?b=c", ServiceReady(Way.HTTP, "/a?b=c", 81)),
        ("tcp", ServiceReady(Way.TCP, "", None)),
        ("tcp 65535", ServiceReady(Way.TCP, "", 65535)),
        ("command curl -f 'http://x y'", ServiceReady(Way.COMMAND, "curl -f 'http://x y'", None)),
    ],
)
def test_how_a_service_is_asked_is_written_in_one_text(text: str, ready: ServiceReady) -> None:
    assert parse_ready(text) == ready


@pytest.mark.parametrize("text", ["", "http", "http path", "tcp 0", "tcp 70000", "udp 5"])
def test_what_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(HapteraError):
        parse_ready(text)


def free_port() -> int:
    with socket.create_server((ADDRESS, 0)) as one:
        port: int = one.getsockname()[1]
        return port


@pytest.fixture
def server(web: Callable[..., Service]) -> Callable[[str], Service]:
    port = free_port()

    def make(ready: str) -> Service:
        one = web(COMMAND)
        values = {**one.target.values, "port": port, "ready": ready}
        attributes = {"node.address": ADDRESS}
        target = dataclasses.replace(one.target, values=values, attributes=attributes)
        return connect(target)

    return make


def let_go(one: Service) -> None:
    one.home.make()
    (one.home.path / "go").touch()


@pytest.mark.parametrize("ready", ["http /", "tcp", "command test -e go"])
def test_a_start_returns_once_the_service_answers(
    server: Callable[[str], Service], ready: str
) -> None:
    one = server(ready)
    let_go(one)
    asyncio.run(start(one))
    assert asyncio.run(look_run(one)) is Run.RUNNING


@pytest.mark.parametrize(
    ("ready", "why"),
    [
        ("http /sick", "GET /sick: 503 Service Unavailable"),
        ("tcp 1", "tcp port 1: Connection refused"),
        ("command false", "false: status 1"),
        ("command /no/such", "command /no/such: No such file or directory"),
    ],
)
def test_what_runs_and_does_not_answer_is_unready_and_says_why(
    server: Callable[[str], Service], ready: str, why: str
) -> None:
    one = server("http /")
    let_go(one)
    asyncio.run(start(one))
    other = server(ready)
    assert asyncio.run(look_run(other)) is Run.UNREADY
    assert other.target.take_note() == why
    asyncio.run(stop(other))
    assert asyncio.run(look_run(other)) is Run.STOPPED


def test_what_answers_late_is_waited_for_and_left_alone(
    server: Callable[[str], Service], tmp_path: Path
) -> None:
    one = server("http /")

    async def scenario() -> tuple[Run, Run]:
        async with asyncio.TaskGroup() as tasks:
            starting = tasks.create_task(start(one))
            await until(one.home.record)
            before, record = await look_run(one), one.home.record()
            let_go(one)
        assert starting.done()
        await await_answer(one)
        assert one.home.record() == record
        return before, await look_run(one)

    assert asyncio.run(scenario()) == (Run.UNREADY, Run.RUNNING)
