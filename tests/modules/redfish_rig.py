"""A real Redfish service (sushy-emulator), with TLS and passwords, in front of fake systems."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from haptera.model.entity import node_id
from haptera.modules.redfish import module
from haptera.modules.redfish.bmc import RedfishBmc
from haptera.sdk import Target
from tests.lab.rig import wait_for
from tests.modules.ipmi_rig import PASSWORD, USER
from tests.network import NETWORK

HOST: Final = f"{NETWORK}.78.1"
PORT: Final = 8443
# Its uuid is the last part of its path.
SYSTEM: Final = "27946b59-9e44-4fa7-8e91-f3527a1ef0{:02}"
CERTIFICATE: Final = "certificate.pem"
EMULATOR: Final = Path(sys.executable).with_name("sushy-emulator")


@dataclass(frozen=True)
class Service:
    """The emulator, and where its systems are."""

    directory: Path
    process: "subprocess.Popen[bytes]"

    @property
    def address(self) -> str:
        return f"{HOST}:{PORT}"

    def of_system(self, number: int) -> str:
        return f"{self.address}/redfish/v1/Systems/{SYSTEM.format(number)}"


@contextmanager
def service(directory: Path, systems: int = 1) -> Iterator[Service]:
    """A service whose systems are off."""
    if not EMULATOR.exists():
        pytest.skip("sushy-emulator is missing: make setup-dev")
    certify(directory)
    _write_config(directory, systems)
    command = [EMULATOR, "--fake", "--config", directory / "emulator.conf", "-i", HOST]
    command += ["-p", str(PORT), "--ssl-certificate", directory / CERTIFICATE]
    command += ["--ssl-key", directory / "key.pem"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_for(_listens)
        yield Service(directory, process)
    finally:
        process.kill()
        process.wait()


def certify(directory: Path) -> None:
    """Give the service a certificate that only itself vouches for, as BMCs come."""
    made = ["-keyout", directory / "key.pem", "-out", directory / CERTIFICATE]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2"]
    named = ["-subj", "/CN=bmc", "-addext", f"subjectAltName=IP:{HOST}"]
    command = ["openssl", "req", "-x509", *kind, *named, *made]
    subprocess.run(command, check=True, capture_output=True)


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


def _listens() -> bool:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(one.split()[1].endswith(f":{PORT:04X}") and one.split()[3] == "0A" for one in lines)


def bmc_of(directory: Path, address: str, **more: object) -> RedfishBmc:
    settings = {"user": USER, "password": PASSWORD, "graceful_s": 20, **more}
    target = Target(
        node_id("n01"),
        {"bmc": address},
        settings=module.settings(settings),
        run_dir=directory,
    )
    return RedfishBmc(target)
