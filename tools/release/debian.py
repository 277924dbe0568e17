"""The Debian packages: a virtual environment below /opt, units, and what scripts do around them."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.release.python import pip

HOME = Path("opt/haptera")
SITE = Path("build/docs/site")
SERIES = f"{sys.version_info.major}.{sys.version_info.minor}"
NEXT = f"{sys.version_info.major}.{sys.version_info.minor + 1}"
SCRIPTS = ("postinst", "prerm", "postrm", "templates")
MAINTAINER = "The haptera project <root@localhost>"
START = """\
#!/opt/haptera/bin/python
import sys
from haptera.__main__ import main
sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class Package:
    """A role of a machine: the extra that it installs, its units, and its lines of `control`."""

    name: str
    extra: str
    units: tuple[str, ...]
    lines: str


# The parent's holds all that the agent's does, units included: a machine has one of them.
PACKAGES = (
    Package(
        "haptera-parent",
        "[parent]",
        ("haptera-parent", "haptera-agent"),
        """\
Provides: haptera-agent
Conflicts: haptera-agent
Replaces: haptera-agent
Recommends: ipmitool, ipxe
Description: cluster automation: a parent, with its API and command line
 A parent keeps the machines of a cluster as they are described: power, boot,
 system images, services and jobs. `haptera setup parent` sets one up.
""",
    ),
    Package(
        "haptera-agent",
        "",
        ("haptera-agent",),
        """\
Description: cluster automation: the agent of a node
 The agent runs what its node should have, also while its parent is away.
""",
    ),
)


def wheels_for(tree: Path, at: Path) -> Path:
    """All that a parent needs, by the lock and its hashes, for this Python and machine."""
    lock = tree / "requirements.txt"
    pip("download", "--require-hashes", "--only-binary", ":all:", "-r", lock, "-d", at)
    return at


def debian_package(
    package: Package, tree: Path, wheel: Path, wheels: Path, made: Path, epoch: int
) -> Path:
    """Write the package for the Debian and the machine that this runs on."""
    root = tree.parent / package.name
    version = wheel.name.split("-")[1]
    environment(package, wheel, wheels, root)
    bin_dir, units = root / "usr/bin", root / "lib/systemd/system"
    for one in (bin_dir, units, root / "etc/haptera", root / "DEBIAN"):
        one.mkdir(parents=True)
    (bin_dir / "haptera").symlink_to("/opt/haptera/bin/haptera")
    for unit in package.units:
        shutil.copy(tree / f"src/haptera/cli/units/{unit}.service", units)
    documents(tree, root / "usr/share/doc" / package.name)
    if package.extra:
        shutil.copytree(tree / SITE, root / "usr/share/doc" / package.name / "html")
    control(package, tree / "contrib/debian", version.replace("rc", "~rc"), root)
    set_modes(root)
    deb = made / f"{package.name}_{version.replace('rc', '~rc')}_{architecture()}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zzstd", "--build", root, deb],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return deb


def environment(package: Package, wheel: Path, wheels: Path, root: Path) -> None:
    """A virtual environment that says where it will lie, not where it was made."""
    home = root / HOME
    packages = home / "lib" / f"python{SERIES}" / "site-packages"
    wanted = f"haptera{package.extra}=={wheel.name.split('-')[1]}"
    offline = ("--no-index", "--find-links", wheels, "--find-links", wheel.parent)
    pip("install", *offline, "--no-compile", "--no-warn-script-location", "-t", packages, wanted)
    shutil.rmtree(packages / "bin")
    bin_dir = home / "bin"
    bin_dir.mkdir()
    for name in ("python", "python3"):
        (bin_dir / name).symlink_to(f"/usr/bin/python{SERIES}")
    (bin_dir / "haptera").write_text(START, "utf-8")
    (bin_dir / "haptera").chmod(0o755)
    (home / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    # Nobody may write there later; by hash, since times change as packages are unpacked.
    compiled = ("-q", "--invalidation-mode", "unchecked-hash", "-s", root, "-p", "/")
    subprocess.run([sys.executable, "-m", "compileall", *compiled, packages], check=True)


def documents(tree: Path, at: Path) -> None:
    at.mkdir(parents=True)
    shutil.copy(tree / "LICENSE", at / "copyright")
    shutil.copy(tree / "README.md", at)
    shutil.copy(tree / "CHANGELOG.md", at)


def control(package: Package, sources: Path, version: str, root: Path) -> None:
    """The package's name, what it needs, its scripts, and the sums of its files."""
    sums = "".join(
        f"{hashlib.md5(one.read_bytes()).hexdigest()}  {one.relative_to(root)}\n"
        for one in files(root)
    )
    size_kib = sum(one.stat().st_size for one in files(root)) >> 10
    text = (
        f"Package: {package.name}\nVersion: {version}\nArchitecture: {architecture()}\n"
        f"Maintainer: {MAINTAINER}\nSection: admin\nPriority: optional\n"
        f"Installed-Size: {size_kib}\n"
        f"Depends: debconf | debconf-2.0, passwd, python3 (>= {SERIES}~), python3 (<< {NEXT})\n"
    )
    (root / "DEBIAN/control").write_text(text + package.lines, "utf-8")
    (root / "DEBIAN/md5sums").write_text(sums, "utf-8")
    for name in SCRIPTS:
        if (source := sources / f"{name}.in").exists():
            script = source.read_text("utf-8").replace("@PACKAGE@", package.name)
            (root / "DEBIAN" / name).write_text(script.replace("@UNITS@", " ".join(package.units)))


def files(root: Path) -> Iterator[Path]:
    return (one for one in sorted(root.rglob("*")) if one.is_file() and not one.is_symlink())


def set_modes(root: Path) -> None:
    """What anybody may read, whatever the umask was; what is a script may be run."""
    for one in (root, *root.rglob("*")):
        if not one.is_symlink():
            runs = one.is_dir() or one.read_bytes()[:2] == b"#!"
            one.chmod(0o755 if runs else 0o644)


def architecture() -> str:
    told = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    )
    return told.stdout.strip()
