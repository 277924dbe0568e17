"""Loopback addresses for tests: each worker of pytest serves at some that no other one uses."""

import fcntl
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from haptera.lab.layout import Places, octet, open_cluster
from tests.lab.rig import wait_for

WORKERS: Final = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
WORKER: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# Where the parents of tests listen; a file adds two numbers of its own.
NETWORK: Final = f"127.{99 + WORKER}"


def draw_cluster(directory: Path) -> UUID:
    """The cluster of a lab there, drawn until no other worker can draw its octet.

    A lab that is begun while another one starts, or is between two runs, may draw the same.
    """
    places = Places(directory)
    while octet(cluster := open_cluster(places)) % WORKERS != WORKER:
        (places.lab / "cluster").unlink()
    return cluster


@contextmanager
def ipv6_loopback() -> Iterator[None]:
    """What is served at ::1, for one worker at a time: it is the only address of its kind."""
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with Path(__file__).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def one_slurm_demo() -> Iterator[None]:
    """The demos with a Slurm, for one worker at a time: they have their ports alike."""
    with (Path(__file__).parents[1] / "examples/slurm/run").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@cache
def why_no_networks() -> str | None:
    """Why no network namespace can be made here, if so: not every root of a container may."""
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    return tried.stderr.strip() if tried.returncode else None


@contextmanager
def another_network() -> Iterator[int]:
    """A process in a network namespace of its own; root only."""
    own = os.readlink("/proc/self/ns/net")
    process = subprocess.Popen(["unshare", "--net", "sleep", "1000"])
    try:
        wait_for(lambda: os.readlink(f"/proc/{process.pid}/ns/net") != own)
        yield process.pid
    finally:
        process.kill()
        process.wait()
