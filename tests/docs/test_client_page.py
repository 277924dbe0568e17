"""The page on the Python client: its programs run on a real parent and print what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.rig import ADDRESS, SITE, client_of, environment, served
from tests.lab.rig import WAIT_S_MAX

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/client.md").read_text("utf-8")
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LIMIT = re.compile(r"^\| `([A-Z_]+)` \|[^|]*\| ([^|]*) \|$", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.net
def test_each_example_prints_what_the_page_says(tmp_path):
    """In the order of the page: later ones see what earlier ones changed."""
    examples = EXAMPLE.findall(PAGE)
    assert len(examples) == PAGE.count("```python\n") >= 5
    (tmp_path / "site.yaml").write_text(SITE)
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=ADDRESS):
        for program, output in examples:
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", program],
                env=environment(client_of(tmp_path)),
                capture_output=True,
                text=True,
                timeout=WAIT_S_MAX,
            )
            assert (done.stdout, done.stderr) == (output, "")
