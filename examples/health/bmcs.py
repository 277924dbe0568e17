"""Sensors of BMCs that are beside those by which the lab switches power; and these BMCs.

python bmcs.py FOLDER COUNT     runs them, each with its files in FOLDER/nN/bmc, until it ends
"""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from haptera.kinds import node
from haptera.lab.machine_bmc import Language, MachineBmcConfig, bmc_command, write_bmc
from haptera.modules import bmc_sensors
from haptera.modules.bmc_sensors import ROUND_S_MAX, measure
from haptera.modules.ipmi import event_log
from haptera.modules.ipmi.bmc import IpmiBmc, IpmiSettings
from haptera.modules.ipmi.sampling import read_sensors
from haptera.sdk import PARENT, Measured, Module, Target

HOST = "127.0.0.1"
PORT = 6230


def port_of(name: str) -> int:
    return PORT + int(name.removeprefix("n"))


def connect(target: Target) -> IpmiBmc:
    attributes = {"bmc": f"{HOST}:{port_of(target.name)}"}
    return IpmiBmc(replace(target, attributes=attributes))


module = Module(
    "bmcs",
    connect=connect,
    where={node.platform: "labnode"},
    context=PARENT,
    settings=IpmiSettings,
)


@module.sampler(*bmc_sensors.READINGS, *event_log.READINGS, every_s=10, within_s=ROUND_S_MAX)
async def sensors(bmc: IpmiBmc) -> Measured:
    return await measure(bmc, partial(read_sensors, bmc))


def main(folder: Path, count: int) -> None:
    password = folder / "password"
    password.write_text(os.environ["HAPTERA_SECRET_BMC"])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    running = []
    for name in (f"n{number}" for number in range(1, count + 1)):
        home = folder / name / "bmc"
        home.mkdir(parents=True, exist_ok=True)
        guid, access = uuid4().hex, ("haptera", str(password))
        config = MachineBmcConfig(Language.IPMI, name, guid, HOST, port_of(name), *access)
        write_bmc(config, home)
        for file, text in (("power", "1"), ("boot", "default")):
            (home / file).write_text(f"{text}\n")
        words = [*bmc_command(config, home)]
        running.append(subprocess.Popen(words, cwd=home, stdin=subprocess.DEVNULL))
    try:
        signal.pause()
    finally:
        for one in running:
            one.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
