"""A container of the released image, as runc runs it: what a container engine does with one."""

import gzip
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.lab.rig import wait_for

# The user that the image names, by number.
USER = 999


@contextmanager
def container(image: Path, place: Path, site: str) -> Iterator[Callable[..., tuple[int, str]]]:
    """The image's container, called `parent`; gives what runs a command of runc's.

    Its volume is `place`/state. It has no network but its loopback, and no capabilities.
    """
    packed = place / "image.tar"
    packed.write_bytes(gzip.decompress(image.read_bytes()))
    (place / "site.yaml").write_text(site)
    own = ("runc", "--root", str(place / "runc"))
    builder = output("buildah", "from", f"docker-archive:{packed}")

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run([*own, *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    try:
        main = subprocess.Popen([*own, "run", "--bundle", _bundle(builder, place), "parent"])
        try:
            wait_for(lambda: main.poll() is not None or run("state", "parent")[0] == 0)
            yield run
        finally:
            run("kill", "parent", "KILL")
            main.wait(60)
    finally:
        output("buildah", "rm", builder)


def _bundle(builder: str, place: Path) -> Path:
    """A bundle with the image's own process, over runc's defaults."""
    said = json.loads(output("buildah", "inspect", builder))["Docker"]["config"]
    assert said["Healthcheck"]["Test"] == ["CMD", "/usr/lib/haptera/alive"]
    state, bundle = place / "state", place / "bundle"
    for one in (state, bundle):
        one.mkdir(exist_ok=True)
    os.chown(state, USER, USER)
    file = bundle / "config.json"
    file.unlink(missing_ok=True)
    output("runc", "spec", "--bundle", str(bundle))
    config = json.loads(file.read_text())
    config["root"] = {"path": output("buildah", "mount", builder), "readonly": True}
    config["process"] |= {
        "terminal": False,
        "user": {"uid": USER, "gid": USER},
        "args": [*said["Entrypoint"], *said["Cmd"], "--site", "/site.yaml"],
        "cwd": said["WorkingDir"],
        "env": said["Env"],
        "capabilities": {},
        "noNewPrivileges": True,
    }
    (volume,) = said["Volumes"]
    config["mounts"] += [_bound(state, volume), _bound(place / "site.yaml", "/site.yaml", "ro")]
    file.write_text(json.dumps(config))
    return bundle


def _bound(source: Path, target: str, *options: str) -> dict[str, Any]:
    there = {"destination": target, "source": str(source)}
    return {**there, "type": "bind", "options": ["rbind", *options]}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
