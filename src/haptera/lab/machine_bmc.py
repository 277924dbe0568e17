"""The BMC in front of a virtual machine, ipmi_sim or a Redfish emulator: its files and command."""

import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from haptera.lab import redfish_bmc
from haptera.lab.ipmi_sensors import SEL_COMMAND, AnalogSensor, sensor_commands
from haptera.runtime.identity.private import private_directory

# The files of a BMC's sensors, with what they read at first: degrees, and steps of a fan's speed.
SENSORS: Final = {"inlet": 22, "cpu": 45, "fan": 100}
# Where the machine's serial console is, at the BMC's address, by telnet: that of IPMI reads it.
CONSOLE_PORT: Final = 2_323

_LAN: Final = """name "{name}"
set_working_mc 0x20
  startlan 1
    addr {host} {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid {guid}
  endlan
  sol "telnet:{host}:{console}" 115200
  chassis_control "{script}"
  user 1 false "" "none" user 10 none
  user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
_COMMANDS: Final = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
{sensors}
mc_enable 0x20
"""
_SCRIPT: Final = """#!/bin/sh
# What the BMC calls: `get power`, `set power 1`, `set boot pxe`, `set reset 1`, `set shutdown 1`.
cd {directory} || exit 1
case "$1 $2" in
"get power") echo "power:$(cat {says} power 2>/dev/null | head -n 1)" ;;
"get boot") echo "boot:$(cat boot)" ;;
set*) echo "$2 $3" >orders ;;
esac
"""
_EMULATOR: Final = """SUSHY_EMULATOR_AUTH_FILE = {users!r}
SUSHY_EMULATOR_STATE_DIR = {state!r}
SUSHY_EMULATOR_FAKE_SYSTEMS = [{system!r}]
"""
# The cost of a hash whose password is random.
_ROUNDS: Final = 4


class Language(StrEnum):
    """What a BMC speaks: the platform of its node."""

    IPMI = "ipmi"
    REDFISH = "redfish"


class Nic(StrEnum):
    """The network card of a virtual machine: what its driver is for."""

    VIRTIO = "virtio"
    E1000 = "e1000"
    E1000E = "e1000e"
    RTL8139 = "rtl8139"


class MachineBmcConfig(msgspec.Struct, frozen=True):
    """One BMC: what it speaks, where, and who may ask it."""

    language: Language
    name: str
    guid: str
    host: str
    port: int
    user: str
    password_file: str


def bmc_command(config: MachineBmcConfig, home: Path) -> Sequence[str]:
    """What runs it, in its folder."""
    match config.language:
        case Language.IPMI:
            return ["ipmi_sim", "-c", "lan.conf", "-f", "cmd.emu", "-s", "state", "-n"]
        case Language.REDFISH:
            place = f"{config.host}:{config.port}"
            return [sys.executable, "-m", redfish_bmc.__name__, str(home), place]


def write_bmc(config: MachineBmcConfig, home: Path) -> None:
    """Write what it reads when it starts."""
    private_directory(home / "state")
    password = Path(config.password_file).read_text(encoding="ascii").strip()
    match config.language:
        case Language.IPMI:
            _write_ipmi(config, home, password)
        case Language.REDFISH:
            _write_redfish(config, home, password)
    (home / "address").write_text(f"{config.host}:{config.port}\n", encoding="ascii")


def _write_ipmi(config: MachineBmcConfig, home: Path, password: str) -> None:
    names = {
        "name": config.name,
        "host": config.host,
        "port": config.port,
        "guid": config.guid,
        "console": CONSOLE_PORT,
        "script": home / "chassis",
        "user": config.user,
        "password": password,
        "directory": home,
        "says": redfish_bmc.SAYS,
        "sensors": "\n".join((SEL_COMMAND, *sensor_commands(_sensors(home)))),
    }
    for name, raw in SENSORS.items():
        if not (home / name).exists():
            _write(home / name, f"{raw}\n")
    for name, text in {"lan.conf": _LAN, "cmd.emu": _COMMANDS, "chassis": _SCRIPT}.items():
        _write(home / name, text.format(**names), stat.S_IXUSR if name == "chassis" else 0)


def _sensors(home: Path) -> Sequence[AnalogSensor]:
    return (
        AnalogSensor.of_temperature("Inlet Temp", home / "inlet"),
        AnalogSensor.of_temperature("CPU Temp", home / "cpu"),
        AnalogSensor.of_fan("Fan 1", home / "fan"),
    )


def _write_redfish(config: MachineBmcConfig, home: Path, password: str) -> None:
    import bcrypt  # it comes with the emulator

    shutil.rmtree(home / "state")
    private_directory(home / "state")
    known = bcrypt.hashpw(password.encode(), bcrypt.gensalt(_ROUNDS)).decode()
    _write(home / "users", f"{config.user}:{known}\n")
    system = {"uuid": redfish_bmc.SYSTEM, "name": config.name, "power_state": "Off", "nics": []}
    places = {"users": str(home / "users"), "state": str(home / "state")}
    _write(home / "emulator.conf", _EMULATOR.format(**places, system=system))
    # Clients that pinned it before know it still.
    if not (home / redfish_bmc.CERTIFICATE).exists():
        certify(home, config.host)


def certify(home: Path, host: str) -> None:
    """Make a key, and a certificate that only itself vouches for, as BMCs come."""
    key, certificate = home / redfish_bmc.KEY, home / redfish_bmc.CERTIFICATE
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "3650"]
    named = ["-subj", "/CN=bmc", "-addext", f"subjectAltName=IP:{host}"]
    made = ["-keyout", str(key), "-out", str(certificate)]
    command = ["openssl", "req", "-x509", *kind, *named, *made]
    subprocess.run(command, check=True, capture_output=True)


def _write(path: Path, text: str, more_mode: int = 0) -> None:
    mode = stat.S_IRUSR | stat.S_IWUSR | more_mode
    path.touch(mode=mode)
    path.chmod(mode)
    path.write_text(text, encoding="ascii")
