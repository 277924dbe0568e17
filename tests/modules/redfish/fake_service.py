"""A Redfish service over real TLS whose answers a test decides: for what no emulator does."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.lab.machine_bmc import certify
from haptera.lab.redfish_bmc import CERTIFICATE, KEY, SESSIONS_PATH
from haptera.modules.redfish.bmc import RedfishBmc
from tests.modules import redfish_rig
from tests.network import NETWORK

HOST: Final = f"{NETWORK}.79.1"
# None is used twice, for what is learnt of a service is kept.
_ports: Final = count(20_000)
SYSTEMS: Final = "/redfish/v1/Systems"
SYSTEM: Final = f"{SYSTEMS}/1"
RESET: Final = f"{SYSTEM}/Actions/ComputerSystem.Reset"
MEMBERS: Final = {"Members": [{"@odata.id": SYSTEM}]}


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: Message
    content: bytes

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.content)


@dataclass(frozen=True)
class Told:
    """One answer; a `body` that is no bytes goes as JSON.

    It may be the last one of its connection, which ends without a word of that.
    """

    status: int = 200
    body: object = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_last: bool = False


Answers = Callable[[Asked], Told]


@dataclass
class FakeService:
    """It keeps what it was asked; its certificate can become another."""

    directory: Path
    port: int
    context: ssl.SSLContext
    asked: list[Asked] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def lines(self) -> list[str]:
        return [one.line for one in self.asked]

    @property
    def changes(self) -> list[Asked]:
        """What it was asked to do, its sessions aside."""
        asked = (one for one in self.asked if one.method != "GET")
        return [one for one in asked if not one.path.startswith(SESSIONS_PATH)]

    def certify_anew(self) -> None:
        _load(self.context, self.directory / "another")

    def bmc(self, path: str = "", quirks: str = "", **more: object) -> RedfishBmc:
        """How haptera asks it."""
        more = {"graceful_s": 0.1, **more}
        return redfish_rig.bmc_of(self.directory, f"{self.address}{path}", quirks, **more)


@contextmanager
def fake_service(directory: Path, answers: Answers) -> Iterator[FakeService]:
    """A service that answers so, for as long as the block lasts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, directory)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            asked = Asked(self.command, self.path, self.headers, self.rfile.read(length))
            service.asked.append(asked)
            told = answers(asked)
            self.send_response_only(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            body = told.body if isinstance(told.body, bytes) else msgspec.json.encode(told.body)
            if "Content-Length" not in told.headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = self.close_connection or told.is_last

        do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - http.server's names

        def log_message(self, *_words: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_words: object) -> None:
            """A client that does not trust the certificate hangs up."""

    with Server((HOST, next(_ports)), Handler) as server:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        service = FakeService(directory, server.server_address[1], context)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


def system(**more: object) -> dict[str, object]:
    """A ComputerSystem that is on, as most BMCs show it."""
    offered = ["On", "ForceOff", "GracefulShutdown"]
    reset = {"target": RESET, "ResetType@Redfish.AllowableValues": offered}
    sources = ["None", "Pxe", "Hdd"]
    boot = {
        "BootSourceOverrideEnabled": "Disabled",
        "BootSourceOverrideTarget": "None",
        "BootSourceOverrideTarget@Redfish.AllowableValues": sources,
    }
    return {
        "@odata.id": SYSTEM,
        "Manufacturer": "ACME",
        "PowerState": "On",
        "Boot": boot,
        "Actions": {"#ComputerSystem.Reset": reset},
        **more,
    }


def error(message: str, code: str = "Base.1.8.GeneralError") -> dict[str, object]:
    return {"error": {"@Message.ExtendedInfo": [{"Message": message, "MessageId": code}]}}


def usual(asked: Asked, shown: Mapping[str, object]) -> Told:
    """The answers of a service without faults whose one system is this."""
    match asked.method, asked.path:
        case "GET", "/redfish/v1/Systems":
            return Told(body=MEMBERS)
        case "GET", "/redfish/v1/Systems/1":
            return Told(body=shown)
        case "GET", _:
            return Told(404)
        case _:
            return Told(204)


def _load(context: ssl.SSLContext, directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    certify(directory, HOST)
    context.load_cert_chain(directory / CERTIFICATE, directory / KEY)
