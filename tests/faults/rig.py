"""A real parent, and nodes in the test's own hands: their BMCs, and one's keys and socket."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pytest

from haptera.core.state.side import PARENT
from haptera.core.sync.delta import mark_digest
from haptera.daemon.agent import parse_invitation
from haptera.daemon.parts import HELLO_PORT, catalog_of, codec_of
from haptera.daemon.settings import API_PORT
from haptera.model.entity import EntityId
from haptera.model.facts import Method
from haptera.model.messages import Mark, Message, ObservedUpdate, SeenValue
from haptera.runtime import clock
from haptera.runtime.enrolment.enrol import Enrolment, Invitation, enrol
from haptera.runtime.identity.pki import new_key
from haptera.wire.frame import DATAGRAM_BYTES_MAX, DatagramType
from haptera.wire.seal import Greet, Opened, SealRole, Session
from haptera.wire.sync import decode, encode
from haptera.wire.updates import Codec
from tests.cli.rig import client_of, served
from tests.kills.processes import descendants
from tests.kills.writer import Api
from tests.lab.rig import WAIT_S_MAX, wait_for
from tests.network import NETWORK

PARENT_HOST, NODE_HOST = f"{NETWORK}.43.1", f"{NETWORK}.43.2"
WEB = EntityId("service", "web", "n1")

Test = TypeVar("Test", bound=Callable[..., None])


def real(test: Test) -> Test:
    """Mark a test of real processes and sockets."""
    return pytest.mark.net(pytest.mark.slow(test))


class Bmc:
    """A BMC that answers what it is told to: `body` to each look at power, if anything."""

    def __init__(self) -> None:
        self.power = "off"
        self.body: bytes | None = None
        self.orders: list[dict[str, Any]] = []
        self.looks = 0
        self.silent = False
        self._over = threading.Event()

    @property
    def address(self) -> str:
        return f"{NODE_HOST}:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Iterator["Bmc"]:
        self._server = ThreadingHTTPServer((NODE_HOST, 0), self._handler())
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        bmc = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                bmc.looks += self.path == "/power"
                if bmc.silent or self.path != "/power":
                    bmc._over.wait(10)
                    return
                told = json.dumps({"power": bmc.power}).encode()
                self._answer(200, told if bmc.body is None else bmc.body)

            def do_POST(self) -> None:
                bmc.orders.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                bmc.power = bmc.orders[-1]["power"]
                self._answer(202, b"{}")

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class Child:
    """A node's side with keys and socket in the test's hands: it says what it likes."""

    def __init__(
        self,
        invitation: Invitation,
        enrolment: Enrolment,
        bound: socket.socket,
        codec: Codec | None = None,
    ) -> None:
        self.invitation = invitation
        self._saved = enrolment.session
        self.session = Session(enrolment.session.agreement, SealRole.CHILD, own_boot=0xFA017)
        self.codec = codec or codec_of(catalog_of(enrolment.modules))
        self.socket = bound
        self.heard: list[bytes] = []
        self.sent: list[bytes] = []
        self._version = 0

    def send(self, datagram: bytes) -> None:
        self.sent.append(datagram)
        self.socket.sendto(datagram, self._saved.address)

    def say_hello(self) -> None:
        """One that says nothing but that it is there."""
        for body in self._bodies(Mark(0, 0, mark_digest({})), ()):
            self.send_sealed(body)

    def send_sealed(self, body: bytes) -> None:
        """Whatever this is, it bears the node's own seal."""
        self.send(self.session.seal(body))

    def hear(self) -> list[Message]:
        """What has come from the parent; whom it does not know, it is made to know."""
        messages = []
        for datagram in self._arrived():
            self.heard.append(datagram)
            match self.session.open(datagram, clock.now_ns()):
                case Opened(type=DatagramType.HELLO, body=body):
                    message = decode(body, self.codec, PARENT)
                    assert isinstance(message, Message)
                    messages.append(message)
                case Greet() as greet:
                    self.send(self.session.seal_hi(greet))
                case _:
                    pass
        return messages

    def hear_until(self, found: Callable[[Message], object]) -> list[Message]:
        """All that comes, up to what is looked for."""
        heard: list[Message] = []

        def come() -> bool:
            heard.extend(self.hear())
            return any(found(message) for message in heard)

        wait_for(come)
        return heard

    @property
    def secret(self) -> bytes:
        return self._saved.agreement.secret

    def report(self, entity: EntityId, **values: str) -> None:
        """Say that this was read just now."""
        mark, updates = self._reporting(entity, values)
        for body in self._bodies(mark, updates):
            self.send_sealed(body)

    def _reporting(
        self, entity: EntityId, values: dict[str, str]
    ) -> tuple[Mark, tuple[ObservedUpdate, ...]]:
        self._version += 1
        seen = {
            name: SeenValue(value, True, Method.READ, 0, "service")
            for name, value in values.items()
        }
        update = ObservedUpdate(entity, self._version, seen)
        return Mark(0, self._version, mark_digest({entity: self._version})), (update,)

    def _bodies(self, observed: Mark, updates: tuple[ObservedUpdate, ...]) -> list[bytes]:
        incarnation = self._saved.agreement.incarnation
        schema = self.codec.schema
        message = Message(incarnation, 0, schema, Mark(), observed, updates=updates)
        return encode(message, self.codec, schema)

    def _arrived(self) -> Iterator[bytes]:
        while True:
            try:
                yield self.socket.recv(DATAGRAM_BYTES_MAX)
            except BlockingIOError:
                return


class Listener:
    """A client of the event stream; `until` reads on, so that nothing is missed between."""

    def __init__(self, lines: BinaryIO) -> None:
        self._lines = lines

    def until(self, found: Callable[[Any], bool], *, within_s: float = WAIT_S_MAX) -> list[Any]:
        """All views in the order told, up to the first that is looked for."""
        told = []
        deadline = clock.now_ns() + int(within_s * 1e9)
        for line in self._lines:
            assert clock.now_ns() < deadline, told[-3:]
            if line.startswith(b"data: "):
                for view in json.loads(line.removeprefix(b"data: "))["entities"]:
                    told.append(view)
                    if found(view):
                        return told
        raise AssertionError("the stream has ended")


@dataclass
class Parent:
    """`haptera serve` as a process, asked over REST."""

    home: Path
    pid: int
    bmcs: dict[str, Bmc] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and answer; a request must have an answer."""
        with closing(Api(client_of(self.home))) as api:
            answer = api.ask(method, path, body)
        assert answer is not None, f"no answer to {method} {path}"
        return answer[0], answer[2]

    def raw(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """As curl would, without a client's care for what it sends."""
        with closing(http.client.HTTPConnection(PARENT_HOST, API_PORT, timeout=60)) as connection:
            headers = {"Authorization": f"Bearer {self.token}"}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()

    @contextmanager
    def listening(self) -> Iterator[Listener]:
        with closing(http.client.HTTPConnection(PARENT_HOST, API_PORT, timeout=60)) as connection:
            headers = {"Authorization": f"Bearer {self.token}"}
            connection.request("GET", "/v1/events", headers=headers)
            with connection.getresponse() as response:
                assert response.status == 200, response.read()
                yield Listener(response)

    @property
    def token(self) -> str:
        return str(json.loads(client_of(self.home).read_bytes())["token"])

    def view(self, entity: str) -> Any:
        status, view = self.ask("GET", f"/v1/entities/{entity}")
        assert status == 200, view
        return view

    def desire(self, entity: object, **values: str | int | None) -> None:
        """Desire this of an entity, or (None) nothing any more."""
        status, answer = self.ask("PATCH", f"/v1/entities/{entity}/desired", values)
        assert status == 200, answer

    def declared(self) -> list[str]:
        """All entities that a site file declared; modules are there without that."""
        status, answer = self.ask("GET", "/v1/entities")
        assert status == 200
        return [one["entity"] for one in answer["entities"] if one["kind"] != "module"]

    def looked_at(self, entity: str) -> Any:
        """As `view`, and have it looked at again at once."""
        assert self.ask("POST", f"/v1/entities/{entity}/retry")[0] == 202
        return self.view(entity)

    def module(self, name: str) -> int:
        """The pid of its module's process."""
        comm = f"module {name}"[:15]
        return wait_for(
            lambda: next((one.pid for one in descendants(self.pid) if one.comm == comm), None)
        )

    def apply(self, site: str) -> tuple[int, Any]:
        """As somebody who has seen the plan, where that is asked for."""
        body = {"files": [{"text": site, "name": "site.yaml"}]}
        status, answer = self.ask("POST", "/v1/apply", body)
        if status == HTTPStatus.PRECONDITION_REQUIRED:
            seen = self.ask("POST", "/v1/apply?dry_run=1", body)[1]["plan"]["digest"]
            return self.ask("POST", f"/v1/apply?digest={seen}", body)
        return status, answer

    def site(self, *nodes: str, crowd: str | None = None) -> str:
        """A cluster of these nodes, each with a BMC; n1 is meant to be on and to run web.

        With a `crowd` there are many more, each with a service of this command.
        """
        declared = {name: {"platform": "labnode", "bmc": self.bmcs[name].address} for name in nodes}
        site: dict[str, Any] = {"nodes": declared, "services": {}, "desired": {}}
        if "n1" in nodes:
            site["services"]["web"] = {"command": "web"}
            site["desired"] |= {"n1": {"power": "on", "agent": "up"}, "web@n1": {"run": "running"}}
        if crowd is not None:
            site["nodes"]["c[1-200]"] = {"platform": "none"}
            site["services"]["crowd"] = {"command": crowd}
            site["desired"]["crowd@c[1-200]"] = {"run": "stopped"}
        return json.dumps({"cluster": "faults"} | site)

    def hears(self, child: Child) -> None:
        """The proof that datagrams of this child are still heard: what it reports is shown.

        And nothing that came before them met a fault of the parent's own.
        """
        for value in ("failed", "running"):
            child.report(WEB, run=value)

            def shown(value: str = value) -> bool:
                child.hear()
                observed = self.view(str(WEB))["observed"].get("run")
                return observed is not None and (observed["value"], observed["known"]) == (
                    value,
                    True,
                )

            wait_for(shown)
        assert "Traceback" not in (self.home / "serve.out").read_text()


@contextmanager
def parent(home: Path) -> Iterator[Parent]:
    """A parent of four nodes; it must live to its end, and end well."""
    bmcs = {f"n{number}": Bmc() for number in range(1, 5)}
    with (
        bmcs["n1"].serving(),
        bmcs["n2"].serving(),
        bmcs["n3"].serving(),
        bmcs["n4"].serving(),
    ):
        one = Parent(home, 0, bmcs)
        (home / "site.yaml").write_text(one.site(*bmcs))
        with served(home, "--site", home / "site.yaml", address=PARENT_HOST) as process:
            one.pid = process.pid
            yield one
            assert process.poll() is None


@contextmanager
def enrolled(one: Parent, node: str = "n1", host: str = NODE_HOST) -> Iterator[Child]:
    """The node, booted by its parent and enrolled, with nobody but the test on it."""
    order = wait_for(lambda: next(iter(one.bmcs[node].orders), None))
    invitation = parse_invitation(json.dumps(order["boot"]).encode())
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as bound:
        bound.bind((host, HELLO_PORT))
        bound.setblocking(False)
        child = Child(invitation, join(invitation, host), bound)
        child.hear_until(lambda _: True)
        if node == "n1":
            one.hears(child)
        yield child


def join(invitation: Invitation, host: str = NODE_HOST) -> Enrolment:
    """Claim this token, with a new key."""
    return asyncio.run(enrol(invitation, new_key(), hello_port=HELLO_PORT, local_host=host))
