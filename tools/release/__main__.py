"""Make all that a release consists of, from a tag: `make release`, which says what it takes.

What a tag `v1.2.3` names is exported and stamped with that version. All that is in
`build/release/1.2.3/` is made from this copy, at the time of the commit: the same tag gives the
same wheel and sdist.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.release.debian import PACKAGES, debian_package, wheels_for
from tools.release.image import parent_image
from tools.release.notes import section
from tools.release.python import sdist_and_wheel
from tools.release.sbom import bill_of_materials

ROOT = Path(__file__).resolve().parents[2]
TAG = re.compile(r"v(\d+\.\d+\.\d+(?:rc\d+)?)")
# Each with those before it.
PARTS = ("python", "packages", "all")
VERSION = re.compile(r'^__version__ = ".*"$', re.MULTILINE)


def main(checkout: Path, out: Path | None, part: str) -> Path:
    """Write the artefacts of the tag at HEAD; returns the folder with them."""
    lacking = [one for one in ("buildah", "debootstrap") if shutil.which(one) is None]
    if part == "all" and lacking:
        do = f"apt install {' '.join(lacking)}, or: make release ARGS='--part packages'"
        stop(f"an image of a parent is made by {' and '.join(lacking)}", do)
    version = tagged(checkout)
    made = out or checkout / "build" / "release" / version
    made.mkdir(parents=True, exist_ok=True)
    for old in made.iterdir():
        old.unlink()
    epoch = int(git(checkout, "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory(prefix="haptera-release-") as place:
        tree = export(checkout, version, Path(place) / f"haptera-{version}")
        text = section((tree / "CHANGELOG.md").read_text("utf-8"), version)
        (made / "RELEASE.md").write_text(text, "utf-8")
        say(f"version {version}: wheel and sdist")
        wheel = sdist_and_wheel(tree, made, epoch)
        bill = bill_of_materials((tree / "requirements.txt").read_text("utf-8"), version, epoch)
        (made / f"haptera-{version}.cdx.json").write_text(bill, "utf-8")
        if part != "python":
            wheels = wheels_for(tree, Path(place) / "wheels")
            say("documentation")
            subprocess.run([sys.executable, "-m", "tools.site"], cwd=tree, check=True)
            for package in PACKAGES:
                say(f"Debian package {package.name}")
                deb = debian_package(package, tree, wheel, wheels, made, epoch)
                if part == "all" and package.name == "haptera-parent":
                    say("image of a parent")
                    parent_image(tree, deb, made, epoch)
    write_sums(made)
    return made


def tagged(checkout: Path) -> str:
    """The version that the tag at HEAD names; nothing else has a say in it."""
    tags = git(checkout, "tag", "--points-at", "HEAD").split()
    versions = [found[1] for tag in tags if (found := TAG.fullmatch(tag))]
    if len(versions) != 1:
        stop(
            f"HEAD has {len(versions)} tags of versions, and a release is made of one",
            "tag it, as: git tag -a v0.1.0 -m v0.1.0",
        )
    if git(checkout, "status", "--porcelain", "--untracked-files=no"):
        stop("there are changes that no commit holds", "commit them, or: git stash")
    return versions[0]


def export(checkout: Path, version: str, tree: Path) -> Path:
    """What the commit holds, with modes that depend on no umask, and its version written in."""
    tree.mkdir()
    packed = subprocess.run(
        ["git", "-c", "tar.umask=0022", "-C", checkout, "archive", "HEAD"],
        capture_output=True,
        check=True,
    )
    subprocess.run(["tar", "-x", "-C", tree], input=packed.stdout, check=True)
    file = tree / "src" / "haptera" / "__init__.py"
    text, count = VERSION.subn(f'__version__ = "{version}"', file.read_text("utf-8"))
    if count != 1:
        stop(f"{file.name} names {count} versions", "it needs one line: __version__ = ...")
    file.write_text(text, "utf-8")
    return tree


def write_sums(made: Path) -> None:
    """What `sha256sum --check SHA256SUMS` reads."""
    lines = [
        f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n"
        for one in sorted(made.iterdir())
    ]
    (made / "SHA256SUMS").write_text("".join(lines), "utf-8")


def git(checkout: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", checkout, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def say(text: str) -> None:
    print(f"release: {text}", flush=True)


def stop(what: str, do: str) -> None:
    sys.exit(f"release: {what}\n  {do}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    options.add_argument("--checkout", type=Path, default=ROOT, help="another checkout than this")
    options.add_argument("--out", type=Path, help="another folder; what lies in it is deleted")
    options.add_argument("--part", choices=PARTS, default="all", help="what of it; all needs root")
    given = options.parse_args()
    try:
        say(f"all of it is in {main(given.checkout, given.out, given.part)}")
    except subprocess.CalledProcessError as error:
        stop(
            f"{error.cmd[0]} failed with status {error.returncode}", str(error.stderr or "")[-500:]
        )
