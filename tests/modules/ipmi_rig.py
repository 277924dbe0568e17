"""A real IPMI BMC of the openipmi package, in front of a machine that is two small files."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from haptera.lab.ipmi_sensors import SEL_COMMAND, AnalogSensor, sensor_commands
from haptera.model.entity import node_id
from haptera.modules.ipmi import module
from haptera.modules.ipmi.bmc import IpmiBmc, IpmiSettings
from haptera.sdk import Target
from tests.lab.rig import wait_for
from tests.network import NETWORK

USER: Final = "operator"
PASSWORD: Final = "s3cret-of-the-bmc"
HOST: Final = f"{NETWORK}.77.1"
PORT: Final = 6230
# Where the BMC reads the machine's serial line, by telnet.
SERIAL_PORT: Final = 6231

LAN: Final = """name "bmc"
set_working_mc 0x20
  startlan 1
    addr {host} {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  sol "telnet:{host}:{serial_port}" 115200
  chassis_control "{script}"
  user 1 false "" "none" user 10 none
  user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
COMMANDS: Final = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
{sensors}
mc_enable 0x20
"""
# As ipmi_sim calls it: `get power`, `set power 1`, `set boot pxe`, `set shutdown 1`.
SCRIPT: Final = """#!/bin/sh
cd {directory} || exit 1
case "$1 $2" in
"get power") echo "power:$(cat lie power 2>/dev/null | head -n 1)"; rm -f lie ;;
"get boot") echo "boot:$(cat boot)" ;;
"set power") echo "$1 $2 $3" >>record; echo "$3" >power ;;
"set boot") echo "$1 $2 $3" >>record; echo "$3" >boot ;;
"set shutdown") [ ! -e refuses ] || exit 1
  echo "$1 $2 $3" >>record; [ ! -e obeys ] || echo 0 >power ;;
esac
"""


@dataclass(frozen=True)
class Machine:
    """One machine and its BMC."""

    directory: Path
    address: str
    bmc: "subprocess.Popen[bytes]"

    @property
    def power(self) -> str:
        return (self.directory / "power").read_text().strip()

    def set_power(self, power: str) -> None:
        """As by hand, at the machine."""
        (self.directory / "power").write_text(f"{power}\n")

    def lie_once(self) -> None:
        """Have the next reading say the opposite of what is so."""
        (self.directory / "lie").write_text("0\n" if self.power == "1" else "1\n")

    @property
    def record(self) -> list[str]:
        """What the BMC did, in order."""
        file = self.directory / "record"
        return file.read_text().splitlines() if file.exists() else []


def bmc_of(machine: Machine, quirks: str = "", **more: object) -> IpmiBmc:
    attributes = {"bmc": machine.address, "bmc_quirks": quirks}
    settings = settings_of(**more)
    where = machine.directory
    return IpmiBmc(Target(node_id("n01"), attributes, settings=settings, run_dir=where))


def settings_of(**more: object) -> IpmiSettings:
    settings = {"user": USER, "password": PASSWORD, "cipher_suite": 3, "graceful_s": 0.1, **more}
    made: IpmiSettings = module.settings(settings)
    return made


@contextmanager
def machine(directory: Path) -> Iterator[Machine]:
    """A machine that is off, and its BMC."""
    for tool in ("ipmi_sim", "ipmitool"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: apt install openipmi ipmitool")
    names = {"directory": directory, "host": HOST, "port": PORT, "user": USER}
    sensors = [SEL_COMMAND, *sensor_commands(sensors_below(directory))]
    names |= {
        "sensors": "\n".join(sensors),
        "password": PASSWORD,
        "script": directory / "chassis",
        "serial_port": SERIAL_PORT,
    }
    for name, text in {"lan.conf": LAN, "cmd.emu": COMMANDS, "chassis": SCRIPT}.items():
        (directory / name).write_text(text.format(**names))
    (directory / "chassis").chmod(0o700)
    (directory / "boot").write_text("default\n")
    (directory / "inlet").write_text("23\n")
    (directory / "fan").write_text("100\n")
    (directory / "power").write_text("0\n")
    (directory / "state").mkdir()
    command = ["ipmi_sim", "-c", "lan.conf", "-f", "cmd.emu", "-s", "state", "-n"]
    with (directory / "log").open("wb") as log:
        bmc = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_for(lambda: _listens(PORT))
        yield Machine(directory, f"{HOST}:{PORT}", bmc)
    finally:
        bmc.kill()
        bmc.wait()


def sensors_below(directory: Path) -> list[AnalogSensor]:
    """An inlet and a fan whose values are in files, and a CPU's sensor that is not read."""
    return [
        AnalogSensor.of_temperature("Inlet Temp", directory / "inlet"),
        AnalogSensor.of_fan("Fan 1", directory / "fan"),
        AnalogSensor.of_temperature("CPU Temp", None),
    ]


def overheard(tool: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file where each call of this tool has its words, a line each, from now on."""
    heard, listener = folder / "heard", folder / "bin" / tool
    listener.parent.mkdir()
    listener.write_text(f'#!/bin/sh\necho "$*" >>{heard}\nexec {shutil.which(tool)} "$@"\n')
    listener.chmod(0o700)
    monkeypatch.setenv("PATH", f"{listener.parent}:{os.environ['PATH']}")
    return heard


def _listens(port: int) -> bool:
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") for line in lines)
