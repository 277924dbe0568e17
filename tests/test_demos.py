"""Each example's demo, run to its end as a person runs it; its own check looks from outside."""

import os
import re
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.lab.rig import wait_for
from tests.network import one_slurm_demo, why_no_networks

ROOT = Path(__file__).resolve().parents[1]
# `make test` itself ends with the quickstart's.
DEMOS = sorted(path.parent.name for path in ROOT.glob("examples/*/check.sh"))
# Those that start more than their lab, or have something to clean up after it.
BESIDE = sorted(
    path.parent.name
    for path in ROOT.glob("examples/*/run")
    if re.search(r" &$|trap .*EXIT", path.read_text("utf-8"), re.MULTILINE)
)
WITHIN_S = 900
# Ends what hangs: the checks themselves wait as long as something moves.
DEMO_S_MAX = 3 * 3_600
# Emulated, an agent takes so much processor time where another test has the other thread of a core.
BUSY = {"RACK_AGENT_BACK_S": "10"}


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.timeout(DEMO_S_MAX)
@pytest.mark.parametrize("name", [one for one in DEMOS if one != "quickstart"])
def test_a_demo_ends_well(name: str) -> None:
    """Well is: its check found all as it should be, and no process of it is left."""
    _need(name)
    directory = ROOT / ".haptera" / "demos" / name
    before = _of(directory)

    with one_slurm_demo() if name.startswith("slurm") else nullcontext():
        # What a run that failed left would be taken over, and may still have file systems in it.
        if directory.exists():
            directory.rename(tempfile.mkdtemp(prefix=f"{name}.", dir=directory.parent))
        ran = subprocess.run(
            ["make", "demo", f"DEMO={name}", "ARGS=--once"],
            cwd=ROOT,
            env={**os.environ, **BUSY},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"
    wait_for(lambda: _of(directory) <= before)


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.timeout(WITHIN_S)
@pytest.mark.parametrize("name", BESIDE)
def test_what_runs_beside_a_lab_ends_when_a_signal_ends_the_demo(name: str, tmp_path: Path) -> None:
    """A command that only waits stands in for the lab, in a copy of the project made of links."""
    _need(name)
    if os.geteuid() != 0:
        pytest.skip(f"the demo {name} may start a Slurm or mount: run it as root")
    for part in ROOT.iterdir():
        # Neither .venv nor what other demos left.
        if not part.name.startswith("."):
            (tmp_path / part.name).symlink_to(part)
    _program(tmp_path / ".venv/bin/haptera", "[ $1 = lab ] || exit 0; echo began; exec sleep 1000")
    _program(tmp_path / ".venv/bin/python", f'exec {ROOT}/.venv/bin/python "$@"')
    directory = tmp_path / "demo"
    directory.mkdir()

    with (
        one_slurm_demo() if name.startswith("slurm") else nullcontext(),
        subprocess.Popen(
            [tmp_path / "examples" / name / "run"],
            cwd=tmp_path,
            env={**os.environ, "DEMO_DIR": str(directory)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as run,
    ):
        assert run.stdout is not None
        shown = []
        for line in run.stdout:
            shown.append(line)
            if line == "began\n":
                break
        assert _of(directory) > {run.pid}, "".join(shown)

        run.terminate()
    wait_for(lambda: not _of(directory))


def _need(name: str) -> None:
    needs = (ROOT / "examples" / name / "needs").read_text("utf-8").split()
    lacking = subprocess.run([ROOT / "tools/need", *needs], capture_output=True, text=True)
    if lacking.returncode != 0:
        pytest.skip(lacking.stderr.strip())
    if (ROOT / "examples" / name / "as-root").exists() and os.geteuid() != 0:
        pytest.skip(f"the demo {name} makes network namespaces: run it as root")
    if (ROOT / "examples" / name / "as-root").exists() and (why := why_no_networks()) is not None:
        pytest.skip(why)


def _program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)


def _of(directory: Path) -> set[int]:
    """The processes that have a directory in their words or their environment."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue  # It has ended.
        if str(directory).encode() in told:
            found.add(int(process.name))
    return found


@pytest.mark.parametrize(
    "run", sorted(ROOT.glob("examples/*/run")), ids=lambda one: one.parent.name
)
def test_a_signal_to_a_demo_reaches_its_lab(run: Path) -> None:
    commands = run.read_text("utf-8").replace("\\\n", "").splitlines()

    starts = {one.split()[0] for one in commands if re.search(r'haptera"? lab ', one)}

    assert starts <= ({"attended"} if run.parent.name in BESIDE else {"exec"})


def test_there_are_demos() -> None:
    assert "quickstart" in DEMOS
