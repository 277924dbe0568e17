"""The image of a parent, for podman, docker or Kubernetes: a small Debian with the package's files.

Health checks are part of Docker's format of images, and not of OCI's; both kinds of engine load it.
"""

import shutil
import subprocess
from pathlib import Path

from tools.release.debian import architecture

# With the authorities that a parent's modules check systems by, and what talks to BMCs.
BASE = "ca-certificates,ipmitool,python3"


def parent_image(tree: Path, deb: Path, made: Path, epoch: int) -> Path:
    """Write what `podman load` and `docker load` read, from the parent's package."""
    version = deb.name.split("_")[1].replace("~", "")
    name, context = f"localhost/haptera-parent:{version}", tree.parent / "image"
    shutil.copytree(tree / "contrib/image", context)
    base = run(tree / "examples/images/base", BASE)
    shutil.copy(base, context / "base.tar")
    run("dpkg-deb", "--extract", deb, context / "root")
    shutil.rmtree(context / "root/lib")  # units; and here it would replace a link
    alive = context / "root/usr/lib/haptera/alive"
    alive.parent.mkdir(parents=True)
    shutil.move(context / "alive", alive)
    alive.chmod(0o755)
    out = made / f"haptera-parent_{version}_{architecture()}.image.tar"
    try:
        same = ("--format", "docker", "--timestamp", str(epoch), "--layers=false")
        run("buildah", "build", "--quiet", "--isolation", "chroot", *same, "-t", name, context)
        run("buildah", "push", "--quiet", name, f"docker-archive:{out}:{name}")
    finally:
        subprocess.run(["buildah", "rmi", name], capture_output=True, check=False)
    run("gzip", "--no-name", out)
    return out.with_name(f"{out.name}.gz")


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()
