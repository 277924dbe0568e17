"""The example of a module with a session of its own, under a real parent."""

import json
import shutil
from pathlib import Path

import pytest

from examples.shelf import test_shelf
from tests.cli.rig import client_of, served, typed
from tests.lab.rig import ROOT, wait_for
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(480)]

ADDRESS = f"{NETWORK}.59.1"

test_on_its_bench = test_shelf.test_a_machine_is_switched_by_the_session_of_the_shelf


def test_a_replaced_module_logs_out_before_the_next_process_of_it_logs_in(tmp_path: Path) -> None:
    for name in ("shelf.py", "site.yaml"):
        shutil.copy(ROOT / "examples" / "shelf" / name, tmp_path)
    client = client_of(tmp_path)

    def type_in(*words: object) -> tuple[int, str, str]:
        return typed(*words, folder=tmp_path, client=client)

    def stands(entity: str) -> object:
        told = json.loads(type_in("get", entity, "-o", "json")[1])
        return told["condition"]

    def log() -> list[str]:
        (found,) = tmp_path.rglob("commands")
        return found.read_text().splitlines()

    with served(tmp_path, "--site", tmp_path / "site.yaml", address=ADDRESS):
        wait_for(lambda: stands("node:n1") == "converged")
        assert log() == ["login", "slot-1 on"]
        assert type_in("set", "module:shelf", "version=1")[0] == 0
        wait_for(lambda: len(log()) == 4)
        wait_for(lambda: stands("module:shelf") == "converged")
    assert log()[2:4] == ["logout", "login"]
