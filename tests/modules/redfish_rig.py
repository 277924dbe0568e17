"""A real Redfish service (sushy-emulator), with TLS and passwords, in front of fake systems."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from haptera.lab.machine_bmc import certify
from haptera.model.entity import node_id
from haptera.modules.redfish import module
from haptera.modules.redfish.bmc import RedfishBmc
from haptera.sdk import Target
from tests.kills.processes import listeners
from tests.lab.rig import wait_for
from tests.modules.ipmi_rig import PASSWORD, USER
from tests.network import NETWORK

HOST: Final = f"{NETWORK}.78.1"
PORT: Final = 8443
# Its uuid is the last part of its path.
SYSTEM: Final = "27946b59-9e44-4fa7-8e91-f3527a1ef0{:02}"


@dataclass(frozen=True)
class Service:
    """The emulator, and where its systems are."""

    directory: Path
    process: "subprocess.Popen[bytes]"
    port: int = PORT

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def of_system(self, number: int) -> str:
        return f"{self.address}/redfish/v1/Systems/{SYSTEM.format(number)}"


@contextmanager
def service(directory: Path, systems: int = 1) -> Iterator[Service]:
    """A service whose systems are off; each number of them is served at another port."""
    port = PORT + systems - 1
    if find_spec("sushy_tools") is None:
        pytest.skip("sushy-tools is missing: make setup-dev")
    certify(directory, HOST)
    _write_config(directory, systems)
    emulate = f"from haptera.lab.redfish_bmc import emulate; emulate(Path('.'), {HOST!r}, {port})"
    command = [sys.executable, "-c", f"from pathlib import Path; {emulate}"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_for(lambda: port in listeners(HOST))
        yield Service(directory, process, port)
    finally:
        process.kill()
        process.wait()


def _write_config(directory: Path, systems: int) -> None:
    import bcrypt

    known = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (directory / "users").write_text(f"{USER}:{known}\n")
    fakes = [
        {"uuid": SYSTEM.format(number), "name": f"n{number}", "power_state": "Off", "nics": []}
        for number in range(systems)
    ]
    shutil.rmtree(directory / "state", ignore_errors=True)
    (directory / "state").mkdir()
    (directory / "emulator.conf").write_text(
        f"SUSHY_EMULATOR_AUTH_FILE = {str(directory / 'users')!r}\n"
        f"SUSHY_EMULATOR_FAKE_SYSTEMS = {fakes!r}\n"
        f"SUSHY_EMULATOR_STATE_DIR = {str(directory / 'state')!r}\n"
    )


def bmc_of(directory: Path, address: str, quirks: str = "", **more: object) -> RedfishBmc:
    settings = {"user": USER, "password": PASSWORD, "graceful_s": 20, **more}
    target = Target(
        node_id("n01"),
        {"bmc": address, "bmc_quirks": quirks},
        settings=module.settings(settings),
        run_dir=directory,
    )
    return RedfishBmc(target)
