"""A secret for each node, under a real parent: in its calls, and nowhere else."""

import json
from pathlib import Path

import pytest

from tests.cli.rig import client_of, served, typed
from tests.lab.rig import wait_for
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(480)]

ADDRESS = f"{NETWORK}.60.1"
VAULT = """\
from dataclasses import dataclass
from hashlib import sha256

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module, Secret, Target


@dataclass(frozen=True)
class Settings:
    password: Secret
    user: str = "admin"


# The first digits of the SHA-256 of each password.
DIGITS = {"n1": "73660a4f", "n2": "f52fbd32"}

module = Module("vault", connect=lambda target: target, context=PARENT, settings=Settings)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF, Power.ON), every_s=1)
async def look(target: Target) -> Power:
    seen = sha256(target.settings.password.encode()).hexdigest()[:8]
    return Power.ON if seen == DIGITS[target.name] else Power.OFF
"""
SITE = """\
cluster: vault
nodes:
  "n[1-2]": {}
modules:
  vault:
    place: "vault:module"
    context: parent
    settings: {password: {secret: "bmc/{name}"}}
"""


def test_each_node_is_looked_at_with_its_own_secret(tmp_path: Path) -> None:
    (tmp_path / "vault.py").write_text(VAULT)
    (tmp_path / "site.yaml").write_text(SITE)
    client = client_of(tmp_path)

    def type_in(*words: object) -> tuple[int, str, str]:
        return typed(*words, folder=tmp_path, client=client)

    def powers() -> list[str]:
        told = json.loads(type_in("get", "node", "-o", "json")[1])
        return [one["observed"].get("power", {}).get("value", "") for one in told]

    with served(tmp_path, "--site", tmp_path / "site.yaml", address=ADDRESS):
        for number in (1, 2):
            assert typed(
                "secret", "set", f"bmc/n{number}", folder=tmp_path, given=f"hunter{number}\n"
            ) == (0, "", "")
        wait_for(lambda: powers() == ["on", "on"])
    for file in tmp_path.rglob("*"):
        if file.is_file() and "secrets" not in file.parts and file.suffix != ".py":
            assert b"hunter" not in file.read_bytes(), file
