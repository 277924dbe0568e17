"""What `haptera module new` writes is right as it stands: tested, linted, checked and installed."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from haptera.cli.commands.module.new import FILES
from haptera.cli.main import OK, REFUSED, run

LONGEST = "s" * 64
CALLED_WITHIN_S = 200


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.net
@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    "name",
    ["strip", *(pytest.param(one, marks=pytest.mark.campaign) for one in ("power-strip", LONGEST))],
)
def test_what_is_written_passes_its_tests_and_all_checks_at_once(tmp_path: Path, name: str) -> None:
    assert call(sys.executable, "-m", "haptera", "module", "new", name, folder=tmp_path) == (
        f"{name}: a module {name}; its README.md says how to continue\n"
    )
    folder, package = tmp_path / name, name.replace("-", "_")
    written = {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}
    assert written == {file.format(package=package) for file in FILES}

    assert "4 passed" in python("pytest", "-q", folder=folder)
    python("ruff", "check", ".", folder=folder)
    python("ruff", "format", "--check", ".", folder=folder)
    python("mypy", folder=folder)
    # Its README's own commands, as they are typed; without a device nothing hangs.
    lines = (folder / "README.md").read_text().splitlines()
    lint, check = (line.split()[1:] for line in lines if line.startswith("haptera module "))
    assert python("haptera", *lint, folder=folder) == "1 note (--notes shows notes)\n"
    told = python("haptera", *check, folder=folder)
    assert told.splitlines()[-1] == f"{name}: 28 passed"
    assert python("haptera", "check", "--lab", "site.yaml", folder=folder) == (
        f"cluster {name}: 2 nodes; 1 note (--notes shows notes)\n"
    )


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.net
@pytest.mark.timeout(480)
def test_installed_in_a_fresh_environment_a_site_names_it_without_its_place(tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    # What haptera needs is not fetched again: the new environment sees that of these tests.
    ours = sysconfig.get_path("purelib")
    (own / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    new = str(home / "bin" / "python")

    # Of build tools, too, it takes what is locked here, not the older ones that Python comes with.
    call(new, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools", folder=tmp_path)

    call(new, "-m", "haptera", "module", "new", "strip", folder=tmp_path)
    offline = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    call(new, "-m", "pip", "install", *offline, "./strip", folder=tmp_path)
    listed = json.loads(call(new, "-m", "haptera", "module", "list", "-o", "json", folder=tmp_path))
    assert {
        "group": "haptera.modules",
        "name": "strip",
        "place": "strip.module:module",
        "package": "strip",
        "version": "0.1.0",
    } in listed
    (tmp_path / "site.yaml").write_text(
        "cluster: c\nnodes: {n1: {platform: strip}}\nmodules: {strip: {context: parent}}\n"
        "desired: {n1: {power: on}}\n"
    )
    assert call(new, "-m", "haptera", "check", "site.yaml", folder=tmp_path) == (
        "cluster c: 1 node; 1 note (--notes shows notes)\n"
    )


def test_what_is_there_is_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["module", "new", "strip", "--dir", str(tmp_path / "new")]) == OK
    before = {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()}
    capsys.readouterr()

    assert run(["module", "new", "other", "--dir", str(tmp_path / "new")]) == REFUSED
    said = f"error: {tmp_path / 'new'} is not empty\n  name another folder: --dir\n"
    assert capsys.readouterr().err == said
    assert {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()} == before


def python(*words: str, folder: Path) -> str:
    return call(sys.executable, "-m", *words, folder=folder)


def call(*words: str, folder: Path) -> str:
    """What a command prints, which must end well."""
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words,
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=CALLED_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout
