"""What of an image is looked at before it is run: its paths, as they are seen from inside."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from haptera.images.manifest import ImageManifest
from haptera.kinds.system import parse_limits
from haptera.modules.image.build import MACHINE
from haptera.modules.system.bundle import (
    REAPER_INSIDE,
    SYSTEMD_STOP,
    SystemSurroundings,
    check_command,
    configuration,
    inside,
)
from haptera.modules.system.container import number_of
from haptera.modules.system.reaper import ELF, INITS, needs_reaper, reaper
from haptera.sdk import HapteraError, Refused


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "usr/sbin").mkdir(parents=True)
    (root / "sbin").symlink_to("/usr/sbin")  # absolute, as seen from inside
    (root / "usr/sbin/init").touch(mode=0o755)
    (root / "usr/sbin/text").touch(mode=0o644)
    (root / "out").symlink_to("../../../../../../etc")
    (root / "loop").symlink_to("loop")
    return root


def an_image(*command: str, environment: tuple[str, ...] = ()) -> ImageManifest:
    return ImageManifest("a", "sha256:00", 1, "amd64", command, environment)


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("/sbin/init", "usr/sbin/init"),
        ("sbin/.././sbin/init", "usr/sbin/init"),
        ("/../../usr/sbin/init", "usr/sbin/init"),
        ("/", ""),
        ("/none", None),
        ("/loop", None),
        ("/out/passwd", None),  # of the machine, which is not looked at
    ],
)
def test_links_lead_where_they_lead_from_inside(
    root: Path, path: str, leads_to: str | None
) -> None:
    assert inside(root, path) == (None if leads_to is None else root / leads_to)


@pytest.mark.parametrize(
    "image",
    [
        an_image("/sbin/init"),
        an_image("init"),  # by the PATH that there is by default
        an_image("init", environment=("PATH=/none:/usr/sbin",)),
    ],
)
def test_an_init_that_is_there_passes(root: Path, image: ImageManifest) -> None:
    check_command(image, root)


@pytest.mark.parametrize(
    "image",
    [
        an_image("/sbin/none"),
        an_image("/sbin/text"),  # not to be run
        an_image("/usr/sbin"),
        an_image("init", environment=("PATH=/bin",)),
    ],
)
def test_an_image_without_an_init_is_refused_by_name(root: Path, image: ImageManifest) -> None:
    with pytest.raises(Refused, match=f"image a has no {image.command[0]} that can be run"):
        check_command(image, root)


@pytest.mark.parametrize("name", sorted(INITS))
def test_an_image_with_an_init_gets_no_other(root: Path, name: str) -> None:
    (root / "usr/sbin" / name).write_bytes(ELF)
    assert not needs_reaper(an_image(name), root)


def test_an_image_whose_first_process_is_no_file_is_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "usr/sbin/tini")
    with pytest.raises(Refused, match="tini is a FIFO"):
        needs_reaper(an_image("tini"), root)


def test_an_image_whose_first_process_is_none_gets_one(root: Path) -> None:
    (root / "usr/sbin/init").write_text("#!/bin/sh\nexec slurmd -D\n")
    (root / "usr/sbin/slurmd").write_bytes(ELF)
    assert needs_reaper(an_image("/sbin/init"), root)
    assert needs_reaper(an_image("slurmd", "-D"), root)
    by_systemd = msgspec.structs.replace(an_image("/sbin/init"), stop_signal=SYSTEMD_STOP)
    assert not needs_reaper(by_systemd, root)


def test_the_command_of_an_image_is_named_to_its_added_init_by_its_path(root: Path) -> None:
    (root / "usr/sbin/slurmd").touch(mode=0o755)
    around = SystemSurroundings("n1", root / "jobs", {}, reaper=root / "init")
    said = configuration(an_image("slurmd", "-D"), root, around, "/haptera/a")
    assert said["process"]["args"] == [REAPER_INSIDE, "/usr/sbin/slurmd", "-D"]
    (bound,) = [one for one in said["mounts"] if one["destination"] == REAPER_INSIDE]
    assert bound["source"] == str(root / "init")


@pytest.mark.parametrize(
    ("line", "status"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $PPID; sleep 60", 143)]
)
def test_an_added_init_ends_as_its_command_does(tmp_path: Path, line: str, status: int) -> None:
    program = reaper(MACHINE)
    if program is None:
        pytest.skip("there is none for this machine")
    place = tmp_path / "init"
    place.write_bytes(program)
    place.chmod(0o755)
    assert subprocess.run([place, "/bin/sh", "-c", line], check=False).returncode == status
    assert subprocess.run([place, "/none"], capture_output=True, check=False).returncode == 127


def test_there_is_an_init_for_each_machine_that_images_are_made_for() -> None:
    assert {name for name in ("amd64", "arm64", "s390x") if reaper(name)} == {"amd64", "arm64"}


def test_of_haptera_only_the_gate_is_inside(tmp_path: Path) -> None:
    said = configuration(
        an_image("/init", environment=("A=b", "container=other")),
        tmp_path / "root",
        SystemSurroundings("n1", tmp_path / "jobs", {"HAPTERA_NODE": "n1"}),
        "/haptera/a",
    )

    binds = [one["source"] for one in said["mounts"] if one["type"] == "bind"]
    assert [one for one in binds if "resolv" not in one] == [str(tmp_path / "jobs")]
    assert said["process"]["args"] == ["/init"]
    assert {"A=b", "container=other", "HAPTERA_NODE=n1"} <= {*said["process"]["env"]}
    assert "CAP_SYS_ADMIN" not in said["process"]["capabilities"]["bounding"]


@pytest.mark.parametrize(
    ("said", "resources"),
    [
        ("memory 2GB", {"memory": {"limit": 2 << 30}}),
        ("cpu 150%", {"cpu": {"quota": 150_000, "period": 100_000}}),
        ("pids 50", {"pids": {"limit": 50}}),
    ],
)
def test_limits_are_the_kernels_to_keep(
    tmp_path: Path, said: str, resources: dict[str, object]
) -> None:
    around = SystemSurroundings("n1", tmp_path / "jobs", {}, parse_limits(said))

    told = configuration(an_image("/init"), tmp_path / "root", around, "/haptera/a")

    no_devices = {"devices": [{"allow": False, "access": "rwm"}]}
    assert told["linux"]["resources"] == {**no_devices, **resources}


@pytest.mark.parametrize(
    "text", ["", "memory", "memory 0MB", "memory 1TB", "cpu 50", "pids 1, pids 2", "io 5"]
)
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(HapteraError, match=r"is not a limit|is there twice"):
        parse_limits(text)


@pytest.mark.parametrize("name", ["", "SIGNONE", "RTMIN+x", "²", "9" * 5_000])
def test_a_signal_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="there is no signal"):
        number_of(name)
