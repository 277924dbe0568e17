"""Each example's demo, run to its end as a person runs it; its own check looks from outside."""

import os
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.network import one_slurm_demo, why_no_networks

ROOT = Path(__file__).resolve().parents[1]
# `make test` itself ends with the quickstart's.
DEMOS = sorted(path.parent.name for path in ROOT.glob("examples/*/check.sh"))
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
    needs = (ROOT / "examples" / name / "needs").read_text("utf-8").split()
    lacking = subprocess.run([ROOT / "tools/need", *needs], capture_output=True, text=True)
    if lacking.returncode != 0:
        pytest.skip(lacking.stderr.strip())
    if (ROOT / "examples" / name / "as-root").exists() and os.geteuid() != 0:
        pytest.skip(f"the demo {name} makes network namespaces: run it as root")
    if (ROOT / "examples" / name / "as-root").exists() and (why := why_no_networks()) is not None:
        pytest.skip(why)
    command = ["make", "demo", f"DEMO={name}", "ARGS=--once"]

    with one_slurm_demo() if name.startswith("slurm") else nullcontext():
        # What a run that failed left would be taken over, and may still have file systems in it.
        if (left := ROOT / ".haptera" / "demos" / name).exists():
            left.rename(tempfile.mkdtemp(prefix=f"{name}.", dir=left.parent))
        ran = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **BUSY},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.timeout(WITHIN_S)
@pytest.mark.parametrize(
    ("name", "once"),
    [
        ("queue", " converged"),
        ("slurm_power", "status page"),
        ("tree", "status page"),
        ("tree", " converged"),
    ],
)
def test_a_demo_that_is_ended_leaves_no_process(name: str, once: str, tmp_path: Path) -> None:
    needs = (ROOT / "examples" / name / "needs").read_text("utf-8").split()
    lacking = subprocess.run([ROOT / "tools/need", *needs], capture_output=True, text=True)
    if lacking.returncode != 0:
        pytest.skip(lacking.stderr.strip())
    if os.geteuid() != 0:
        pytest.skip(f"the demo {name} starts a Slurm or mounts: run it as root")
    with (
        one_slurm_demo() if name.startswith("slurm") else nullcontext(),
        subprocess.Popen(
            ["make", "demo", f"DEMO={name}", f"DEMO_DIR={tmp_path}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        ) as make,
    ):
        assert make.stdout is not None
        shown = []
        for line in make.stdout:
            shown.append(line)
            if once in line:
                break
        assert _of(tmp_path) > {make.pid}, "".join(shown)

        make.terminate()
        # Whoever could still write has ended at its end.
        shown += make.stdout

    assert _of(tmp_path) == set(), "".join(shown)


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


def test_there_are_demos() -> None:
    assert "quickstart" in DEMOS
