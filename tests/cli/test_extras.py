"""A node's installation has no web stack: its verbs work, and others name what they need."""

import subprocess
import sys

import pytest

BASE = ("--help", "agent --help", "job --help", "--version")
PROGRAM = """
import sys
for name in ("h11", "yaml", "rich", "starlette", "uvicorn", "prometheus_client", "numpy"):
    sys.modules[name] = None
from haptera.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def typed_on_a_node(line: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *line.split()]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("line", BASE)
def test_a_nodes_verbs_need_no_extra(line: str) -> None:
    assert typed_on_a_node(line).returncode == 0


@pytest.mark.parametrize(
    ("line", "package", "extra"),
    [("check site.yaml", "yaml", "cli"), ("serve --dir .", "prometheus_client", "parent")],
)
def test_another_verb_names_the_extra_that_it_needs(
    line: str, package: str, extra: str, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.yaml").write_text("cluster: c\n")

    said = typed_on_a_node(line)

    assert said.returncode == 1
    assert said.stderr.splitlines()[0] == (
        f"error: this needs {package}, which is not installed here"
    )
    assert f"pip install 'haptera[{extra}]'" in said.stderr
