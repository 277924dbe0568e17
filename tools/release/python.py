"""The sdist and the wheel, built apart from this machine's packages, the same bytes each time."""

import gzip
import io
import os
import re
import subprocess
import tarfile
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path

# One package of the lock: its pin, and the lines with its hashes.
PINNED = re.compile(r"^([a-z0-9-]+)==.*(?:\n    .*)*\n?", re.MULTILINE)
BACKEND = "import sys; from setuptools import build_meta as b; b.build_{0}(sys.argv[1])"


def sdist_and_wheel(tree: Path, made: Path, epoch: int) -> Path:
    """Write both to `made`; the wheel is built from the sdist, so that one lacks nothing."""
    python = builder(tree, tree.parent / "builder")
    build(python, "sdist", tree, made, epoch)
    (sdist,) = made.glob("*.tar.gz")
    sdist.write_bytes(normalised(sdist.read_bytes(), epoch))
    unpacked = tree.parent / "unpacked"
    with tarfile.open(sdist) as packed:
        packed.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    build(python, "wheel", source, made, epoch)
    (wheel,) = made.glob("*.whl")
    return wheel


def builder(tree: Path, at: Path) -> Path:
    """A Python with what the build needs and nothing else, by the lock and its hashes."""
    project = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))
    names = [re.split(r"[^\w-]", one)[0] for one in project["build-system"]["requires"]]
    lock = at.with_suffix(".txt")
    lock.write_text(pins((tree / "requirements.txt").read_text("utf-8"), names), "utf-8")
    venv.create(at, with_pip=False, symlinks=True)
    python = at / "bin" / "python"
    pip("--python", python, "install", "--require-hashes", "-r", lock)
    return python


def pins(lock: str, names: Iterable[str]) -> str:
    wanted = set(names)
    found = {one[1]: one[0] for one in PINNED.finditer(lock) if one[1] in wanted}
    assert found.keys() == wanted, f"the lock lacks {wanted - found.keys()}"
    return "".join(found.values())


def pip(*arguments: str | Path) -> None:
    subprocess.run(
        [os.sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments],
        check=True,
    )


def build(python: Path, what: str, source: Path, made: Path, epoch: int) -> None:
    """Call the build backend, which learns nothing of this machine but the time of the commit."""
    subprocess.run(
        [python, "-I", "-c", BACKEND.format(what), made.resolve()],
        cwd=source,
        env={"PATH": os.defpath, "SOURCE_DATE_EPOCH": str(epoch), "LC_ALL": "C.UTF-8"},
        stdout=subprocess.DEVNULL,
        check=True,
        umask=0o022,
    )


def normalised(packed: bytes, epoch: int) -> bytes:
    """The same files in order, of nobody, and of one time: the backend writes who built it when."""
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(packed)) as old,
        gzip.GzipFile(fileobj=out, mode="wb", filename="", mtime=epoch) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for one in sorted(old.getmembers(), key=lambda member: member.name):
            one.uid = one.gid = 0
            one.uname = one.gname = ""
            one.mtime, one.pax_headers = epoch, {}
            one.mode = 0o755 if one.isdir() or one.mode & 0o100 else 0o644
            new.addfile(one, old.extractfile(one) if one.isfile() else None)
    return out.getvalue()
