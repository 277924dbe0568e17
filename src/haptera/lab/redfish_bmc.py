"""A Redfish BMC in front of a virtual machine: the emulator of sushy-tools, a process of its own.

`python -m haptera.lab.redfish_bmc DIRECTORY HOST:PORT` serves the one system whose chassis reads
orders from DIRECTORY/orders and shows its power and boot device in files there. Sessions (DSP0266),
which the emulator lacks, are before its own authentication.
"""

import base64
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

SYSTEM: Final = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
SESSIONS_PATH: Final = "/redfish/v1/SessionService/Sessions"
# As small BMCs have it: who leaves theirs behind is let in no more.
SESSIONS_MAX: Final = 4
BODY_BYTES_MAX: Final = 4_096
CERTIFICATE: Final = "certificate.pem"
KEY: Final = "key.pem"
# What a BMC whose readings are broken says of the power, in its folder.
SAYS: Final = "says"
_POWERS: Final = {"0": "Off", "1": "On"}
_ORDERS: Final = {
    "On": "power 1",
    "ForceOn": "power 1",
    "ForceOff": "power 0",
    "GracefulShutdown": "shutdown 1",
    "ForceRestart": "reset 1",
    "GracefulRestart": "reset 1",
}
_DEVICES: Final = {"default": "Hdd", "pxe": "Pxe"}

Environment = dict[str, Any]
Answering = Callable[..., Any]
Wsgi = Callable[[Environment, Answering], Iterable[bytes]]


class _LogIn(msgspec.Struct):
    user: str = msgspec.field(name="UserName")
    password: str = msgspec.field(name="Password")


class SessionDoor:
    """Lets in who has a session, as if by name and password; `known` says whether these are right.

    >>> SessionDoor(lambda environment, answer: [], lambda user, password: True).held
    {}
    """

    def __init__(self, app: Wsgi, known: Callable[[str, str], bool]) -> None:
        self._app = app
        self._known = known
        # By token: the number in its path, and what it stands for.
        self.held: dict[str, tuple[str, str]] = {}

    def __call__(self, environment: Environment, answer: Answering) -> Iterable[bytes]:
        method, path = environment["REQUEST_METHOD"], environment["PATH_INFO"]
        token = environment.get("HTTP_X_AUTH_TOKEN")
        if (method, path) == ("POST", SESSIONS_PATH):
            return self._open(environment, answer)
        if token is None:
            return self._app(environment, answer)
        if token not in self.held:
            return _told(answer, "401 Unauthorized")
        number, stands_for = self.held[token]
        if (method, path) == ("DELETE", f"{SESSIONS_PATH}/{number}"):
            del self.held[token]
            return _told(answer, "204 No Content")
        return self._app({**environment, "HTTP_AUTHORIZATION": stands_for}, answer)

    def _open(self, environment: Environment, answer: Answering) -> Iterable[bytes]:
        try:
            asked = msgspec.json.decode(
                environment["wsgi.input"].read(_length(environment)), type=_LogIn
            )
        except (ValueError, RecursionError):
            return _told(answer, "400 Bad Request")
        if not self._known(asked.user, asked.password):
            return _told(answer, "401 Unauthorized")
        if len(self.held) >= SESSIONS_MAX:
            return _told(answer, "503 Service Unavailable")
        token, number = secrets.token_hex(16), secrets.token_hex(4)
        pair = base64.b64encode(f"{asked.user}:{asked.password}".encode()).decode()
        self.held[token] = number, f"Basic {pair}"
        place = ("Location", f"{SESSIONS_PATH}/{number}")
        return _told(answer, "201 Created", ("X-Auth-Token", token), place)


def serve(directory: Path, host: str, port: int) -> None:
    """Serve until killed; `directory` holds the emulator's own files too."""
    from sushy_tools.emulator.resources.systems import fakedriver

    class Chassis(fakedriver.FakeDriver):  # type: ignore[misc]
        """The one system: what its chassis shows, and how that is operated."""

        def get_power_state(self, identity: str) -> str:
            return shown_power(directory)

        def set_power_state(self, identity: str, state: str) -> None:
            _order(directory, _ORDERS[state])

        def get_boot_device(self, identity: str) -> str:
            return _DEVICES[_shown(directory / "boot")]

        def set_boot_device(self, identity: str, boot_source: str) -> None:
            _order(directory, f"boot {boot_source.lower()}")

    # The emulator has no other way to be given one.
    fakedriver.FakeDriver = Chassis
    emulate(directory, host, port)


def shown_power(directory: Path) -> str:
    """The power of the system, or what is said of it where readings are broken."""
    said = directory / SAYS
    return _POWERS[_shown(said if said.exists() else directory / "power")]


def emulate(directory: Path, host: str, port: int) -> None:
    """Serve what `emulator.conf`, `users` and the certificate there say."""
    from sushy_tools.emulator import auth_basic, main
    from sushy_tools.error import FishyError

    def known(user: str, password: str) -> bool:
        try:
            auth_basic.authenticate(str(directory / "users"), user, password.encode())
        except FishyError:
            return False
        return True

    app = main.app
    app.configure(config_file=str(directory / "emulator.conf"))
    app.config["SUSHY_EMULATOR_FAKE_DRIVER"] = True
    app.wsgi_app = SessionDoor(app.wsgi_app, known)
    app.run(host, port, ssl_context=(str(directory / CERTIFICATE), str(directory / KEY)))


def _shown(file: Path) -> str:
    return file.read_text(encoding="ascii").strip()


def _order(directory: Path, order: str) -> None:
    pipe = os.open(directory / "orders", os.O_WRONLY)
    try:
        os.write(pipe, f"{order}\n".encode())
    finally:
        os.close(pipe)


def _length(environment: Environment) -> int:
    text = environment.get("CONTENT_LENGTH") or "0"
    return min(int(text), BODY_BYTES_MAX) if text.isdigit() else 0


def _told(answer: Answering, status: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    answer(status, [("Content-Type", "application/json"), *headers])
    return [b"" if status.startswith("204") else b"{}"]


if __name__ == "__main__":
    _host, _, _port = sys.argv[2].rpartition(":")
    serve(Path(sys.argv[1]), _host, int(_port))
