"""Each declared field that is a path: what may stand there is refused, and not waited for."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from haptera.kinds.node import PowerProfile
from haptera.model.declared.meaning import Meaning
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.modules import cpufreq, netboot, qemu, redfish
from haptera.modules.cpufreq.policies import Processors
from haptera.modules.image.build import Build
from haptera.modules.image.room import StoreRoom
from haptera.modules.netboot.content import make_offer
from haptera.modules.qemu.machine import QemuMachine
from haptera.modules.redfish.bmc import RedfishBmc
from haptera.modules.sensors.module import NodeSensors
from haptera.modules.sensors.module import module as sensors
from haptera.modules.slurm.commands import SlurmCommands
from haptera.rest.endpoints import ENDPOINTS
from haptera.sdk import Boot, Refused, Target
from tests.kinds.code_fields import Field, of_kinds, of_request, of_settings

# A FIFO that is opened waits for ever.
pytestmark = pytest.mark.timeout(60)

NOBODY = 65_534
PATHS = {Meaning.PROGRAM_PATH, Meaning.CODE_FILE, Meaning.HOST_PATH}
# What nothing of haptera opens.
UNOPENED = {
    "backend.output": "Slurm writes there, as the job's user",
    "SubmitBind.source": "the runtime of containers mounts it, for who may run commands",
    "SubmitSpec.devices": "the runtime of containers mounts it, for who may run commands",
}
FILES: Final = (
    "Dockerfile",
    "kernel",
    "initramfs",
    "ipxe.pxe",
    "ipxe.efi",
    *("undionly.kpxe", "snponly.efi"),
)


def target(settings: Any, home: Path) -> Target:
    attributes = {"address": "10.9.0.11", "mac": "52:54:00:00:00:01", "bmc": "127.0.0.1:9"}
    boot = Boot("n01.id.secret", "-----BEGIN", "10.9.0.1:4271")
    return Target(node_id("n01"), attributes, settings=settings, boot=boot, run_dir=home)


def slurm(named: str, _: Path) -> None:
    asyncio.run(SlurmCommands(named, 5.0).run("true"))


def imported(named: str, home: Path) -> None:
    _build(named, home, is_recipe=False)


def built(named: str, home: Path) -> None:
    _build(named, home, is_recipe=True)


def _build(named: str, home: Path, *, is_recipe: bool) -> None:
    room = StoreRoom(home)
    asyncio.run(Build("one", named, is_recipe, home / "work", home / "log", room).run())


def started(named: str, home: Path) -> None:
    settings = qemu.module.settings({"arguments": [], "program": named})
    asyncio.run(QemuMachine(target(settings, home)).power_on())


def asked(named: str, home: Path) -> None:
    given = {"user": "a", "password": "b", "trust": "verified", "ca_file": named}
    RedfishBmc(target(redfish.module.settings(given), home))


def tuned(named: str, home: Path) -> None:
    settings = cpufreq.module.settings({"root": named})
    Processors(target(settings, home)).set(PowerProfile.PERFORMANCE)


def measured(named: str, home: Path) -> None:
    NodeSensors(target(sensors.settings({"root": named}), home))


def offered(setting: str) -> Callable[[str, Path], None]:
    def make(named: str, home: Path) -> None:
        given = {"interface": "eth0", "address": "10.9.0.1/24"}
        given |= {"folder": str(home / "right"), "loaders": str(home / "right"), setting: named}
        settings = netboot.module.settings(given)
        make_offer(target(settings, home), settings, 9.0)

    return make


# How each of them is opened.
OPENED: Final[dict[str, Callable[[str, Path], None]]] = {
    "image.recipe": built,
    "image.source": imported,
    "backend.conf": slurm,
    "settings of slurm: conf": slurm,
    "settings of personality: conf": slurm,
    "settings of cpufreq: root": tuned,
    "settings of netboot: folder": offered("folder"),
    "settings of netboot: loaders": offered("loaders"),
    "settings of qemu: program": started,
    "settings of redfish: ca_file": asked,
    "settings of sensors: root": measured,
}


def declared() -> list[Field]:
    requests = (field for one in ENDPOINTS for field in of_request(one.takes))
    return [one for one in (*of_kinds(), *of_settings(), *requests) if one.meaning in PATHS]


def folder(place: Path) -> Path:
    """A folder with all that is looked for in any of them, which is nobody's but ours."""
    for one in (place, place / "x86_64"):
        one.mkdir(mode=0o755)
        for name in FILES:
            (one / name).touch(0o644)
    return place


def fifo(place: Path) -> None:
    os.mkfifo(place, 0o644)


def device(place: Path) -> None:
    place.symlink_to("/dev/tty")


def socket(place: Path) -> None:
    os.mknod(place, 0o140644)


def linked(place: Path) -> None:
    fifo(place.with_name("pipe"))
    place.symlink_to("pipe")


def round_(place: Path) -> None:
    place.symlink_to(place)


def writable(place: Path) -> None:
    folder(place).chmod(0o777)


def linked_to_writable(place: Path) -> None:
    writable(place.with_name("theirs"))
    place.symlink_to("theirs")


def below_writable(place: Path) -> None:
    (place.parent).chmod(0o777)
    folder(place)


def in_folder_of_others(place: Path) -> None:
    os.chown(folder(place), NOBODY, NOBODY)


def nothing(_: Path) -> None:
    pass


OWNED: Final = "others than its owner may write"
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")


def test_each_path_that_is_declared_says_how_it_is_opened() -> None:
    assert {one.place for one in declared()} == OPENED.keys() | UNOPENED.keys()


@pytest.mark.parametrize("place", sorted(OPENED))
@pytest.mark.parametrize(
    ("made", "said"),
    [
        *((one, ".") for one in (fifo, device, socket, linked, round_, nothing)),
        *((one, OWNED) for one in (writable, linked_to_writable, below_writable)),
        pytest.param(in_folder_of_others, f"belongs to user {NOBODY}", marks=ROOT),
    ],
)
def test_a_path_at_which_others_may_put_something_is_refused(
    place: str, made: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    folder(tmp_path / "right")
    (named := tmp_path / "folder").mkdir()
    made(named / "one")
    with pytest.raises((HapteraError, Refused), match=said):
        OPENED[place](str(named / "one"), tmp_path)


@pytest.mark.parametrize("place", sorted(OPENED))
@pytest.mark.parametrize("text", ["/a\0b", "/" + "a" * 5_000, "/a" * 3_000, "/\ud800"])
def test_a_path_that_none_can_be_is_refused(place: str, text: str, tmp_path: Path) -> None:
    folder(tmp_path / "right")
    with pytest.raises((HapteraError, Refused)):
        OPENED[place](text, tmp_path)
