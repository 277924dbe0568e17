"""A demo that runs while the pages that begin with it are typed."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

# The tutorials that begin with a demo, and in which test_demo_pages.py types the rest.
PAGES_OF_DEMOS = {
    "containers": "docs/tutorial/containers.md",
    "platform": "docs/tutorial/foreign-system.md",
}


def lacking(name: str) -> str | None:
    """The missing needs of a demo, in words."""
    needs = (ROOT / "examples" / name / "needs").read_text("utf-8").split()
    asked = subprocess.run([ROOT / "tools/need", *needs], capture_output=True, text=True)
    return asked.stderr.strip() if asked.returncode else None


@contextmanager
def running_demo(name: str) -> Iterator[Path]:
    """Its folder, from when it can be asked."""
    if (why := lacking(name)) is not None:
        pytest.skip(why)
    folder = ROOT / ".haptera/demos" / name
    if folder.exists():
        folder.rename(tempfile.mkdtemp(prefix=f"{name}.", dir=folder.parent))
    with subprocess.Popen(
        ["make", "demo", f"DEMO={name}"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as make:
        assert make.stdout is not None
        try:
            assert any("status page" in line for line in make.stdout)
            yield folder
        finally:
            make.terminate()
            make.communicate()
