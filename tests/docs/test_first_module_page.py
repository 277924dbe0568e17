"""The page on a first module: it shows the files as they are, and these do what it says."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from examples.first_module import test_outlet
from examples.first_module.outlet import Outlet, look, switch_on
from haptera.cli.main import OK, run
from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.sdk import Refused, Target
from tests.cli.rig import lab
from tests.lab.rig import WAIT_S_MAX, wait_for

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorial/first-module.md").read_text(encoding="utf-8")
TESTS = [one for name, one in vars(test_outlet).items() if name.startswith("test_")]


@pytest.mark.parametrize("name", ["outlet.py", "test_outlet.py"])
def test_the_page_shows_the_file_as_it_is(name: str) -> None:
    shown = re.findall(rf"^```python {name}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

    assert shown == [(ROOT / "examples/first_module" / name).read_text(encoding="utf-8")]


def test_the_lint_finds_what_the_page_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (told,) = re.findall(
        r"^```console\n\$ haptera (.*?)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE
    )
    monkeypatch.chdir(ROOT)
    assert run(told[0].split()) == OK
    assert capsys.readouterr().out == told[1]


@pytest.mark.parametrize("test", TESTS)
def test_the_example_passes_its_own_tests(test: Callable[[], None]) -> None:
    test()


@pytest.mark.net
def test_the_outlet_is_asked_over_a_real_connection() -> None:
    answers = {"state": "ok off", "on": "no the fuse is out", "off": "what?"}

    async def strip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode().strip()
        writer.write(f"{answers[line]}\n".encode())
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(strip, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        outlet = Outlet(Target(node_id("n01"), attributes={"bmc": f"{host}:{port}"}))
        async with server:
            assert await look(outlet) is Power.OFF
            with pytest.raises(Refused, match="the fuse is out"):
                await switch_on(outlet)
            with pytest.raises(ConnectionError, match="what"):
                await outlet.ask("off")

    asyncio.run(run())


@pytest.mark.net
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_ten_minutes_go_as_the_page_says(tmp_path: Path) -> None:
    for command, said in commands("new"):
        if command == "cd strip":
            continue
        folder = tmp_path if " new " in command else tmp_path / "strip"
        assert typed_in(folder, command) == said
    shown = re.findall(r"^```python strip/module.py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert shown == [(tmp_path / "strip/strip/module.py").read_text(encoding="utf-8")]

    (_, *in_lab) = commands("lab")
    with lab(tmp_path / "strip"):
        for command, said in in_lab:
            # What it answers is so soon, not at once: the page is not read so fast.
            wait_for(partial(answers, tmp_path / "strip", command, said))


def commands(fence: str) -> list[tuple[str, str]]:
    """What is typed in blocks of this name, with what it prints."""
    blocks = re.findall(rf"^```console {fence}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", "".join(blocks), re.MULTILINE)


def answers(folder: Path, command: str, said: str) -> bool:
    told = typed_in(folder, command)
    return told == said or command.startswith("haptera set ")


def typed_in(folder: Path, command: str) -> str:
    """What a shell prints of it, with the programs of this environment; how long it took is not."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=WAIT_S_MAX,
        check=False,
    )
    return re.sub(r"(\d passed in) [\d.]+s", r"\1 0.31s", done.stdout + done.stderr)
