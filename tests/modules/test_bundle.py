"""What of an image is looked at before it is run: its paths, as they are seen from inside."""

from pathlib import Path

import pytest

from haptera.kinds.system import parse_limits
from haptera.modules.image.manifest import ImageManifest
from haptera.modules.system.bundle import SystemSurroundings, check_command, configuration, inside
from haptera.modules.system.container import number_of
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


@pytest.mark.parametrize("name", ["", "SIGNONE", "RTMIN+x"])
def test_a_signal_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="there is no signal"):
        number_of(name)
