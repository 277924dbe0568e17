"""The power button of a minOS, pressed as a BMC does that asks it to shut down."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

# The first process of a namespace, in place of `haptera agent --respawn`: it forks an agent, which
# starts what is served, and another one whenever that ends. The button is pressed once.
FIRST = r"""
import os, subprocess, sys, time
off, pressed = sys.argv[1:3]
def log(text): os.write(1, f"{text}\n".encode())
def agent():
    log("an agent starts")
    served = "trap 'echo served ends; exit' TERM; echo served; while :; do sleep 0.1; done"
    with subprocess.Popen(["sh", "-c", served], stdout=subprocess.PIPE, text=True) as one:
        log(one.stdout.readline().strip())
        if os.path.exists(pressed): time.sleep(1000)
        open(pressed, "w").close()
        subprocess.Popen(["sh", off])
        log(one.stdout.readline().strip() or "cut off")
        time.sleep(1000)
def respawn():
    if (child := os.fork()) == 0: agent()
    return child
child = respawn()
while not os.path.exists(pressed + ".off"):
    time.sleep(0.05)
    if os.waitpid(child, os.WNOHANG)[0]: child = respawn()
"""
# What is mounted and named here is seen by these processes alone.
INSIDE = 'mount --bind "$1" /dev/console && export PATH="$2:$PATH" && shift 2 && exec "$@"'


@pytest.mark.net
def test_no_other_agent_starts_while_what_runs_ends(tmp_path: Path) -> None:
    words = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--mount")
    console, programs, pressed = (tmp_path / name for name in ("console", "bin", "pressed"))
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("processes cannot be had in a namespace of their own here")
    if not Path("/dev/console").exists():
        pytest.skip("there is no /dev/console here, in whose place a file is mounted")
    console.touch()
    programs.mkdir()
    (programs / "poweroff").write_text(f'#!/bin/sh\nexec touch "{pressed}.off"\n')
    (programs / "poweroff").chmod(0o755)
    off = files("haptera.minos").joinpath("off.sh")
    first = (sys.executable, "-c", FIRST, str(off), str(pressed))
    inside = ("sh", "-c", INSIDE, "sh", console, programs, *first)
    done = subprocess.run([*words, *inside], capture_output=True, text=True, timeout=60)

    said = [line for line in done.stdout.splitlines() if "agent" in line]
    assert (said, done.returncode) == (["an agent starts"], 0), done
    assert console.read_text().splitlines()[-1] == "minos: off"
