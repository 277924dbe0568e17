"""The page on a first module: it shows the files as they are, and these do what it says."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.first_module import test_outlet
from examples.first_module.outlet import Outlet, look, switch_on
from haptera.cli.main import OK, run
from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.sdk import Refused, Target

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorial/first-module.md").read_text(encoding="utf-8")
TESTS = [one for name, one in vars(test_outlet).items() if name.startswith("test_")]


@pytest.mark.parametrize("name", ["outlet.py", "test_outlet.py"])
def test_the_page_shows_the_file_as_it_is(name: str) -> None:
    shown = re.findall(rf"^```python {name}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

    assert shown == [(ROOT / "examples/first_module" / name).read_text(encoding="utf-8")]


def test_the_page_shows_what_a_new_module_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["module", "new", "strip"]) == OK
    shown = re.findall(r"^```python strip/module.py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert shown == [(tmp_path / "strip/strip/module.py").read_text(encoding="utf-8")]


@pytest.mark.parametrize("test", TESTS)
def test_the_example_passes_its_own_tests(test: Callable[[], None]) -> None:
    test()


@pytest.mark.net
async def test_the_outlet_is_asked_over_a_real_connection() -> None:
    answers = {"state": "ok off", "on": "no the fuse is out", "off": "what?"}

    async def strip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode().strip()
        writer.write(f"{answers[line]}\n".encode())
        writer.close()

    server = await asyncio.start_server(strip, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    outlet = Outlet(Target(node_id("n01"), attributes={"bmc": f"{host}:{port}"}))
    async with server:
        assert await look(outlet) is Power.OFF
        with pytest.raises(Refused, match="the fuse is out"):
            await switch_on(outlet)
        with pytest.raises(ConnectionError, match="what"):
            await outlet.ask("off")
