"""`diff`, `export`, `set`, `unset` and `apply --take`, typed to a real parent."""

import pytest

from tests.cli.rig import client_of, served, told
from tests.cli.rig import typed as type_in
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow]

SITE = """\
cluster: small
nodes: {"n[1-3]": {rack: "1"}}
services: {web: {command: "serve {name}", port: 80}}
desired:
  n[1-3]: {power: on}
  web@n[1-2]: {run: stopped}
policies: {slow: {for: "n*", attempts: 2, cool_down: 90m}}
modules: [service]
"""
EXPORT = """\
cluster: small

nodes:
  n[1-3]: {rack: "1"}

services:
  web: {}

desired:
  n1: {power: off}  # power by user:cli
  n[2-3]: {power: on}
  web@n1: {command: "serve n1"}
  web@n2: {command: "serve n2"}
  web@n[1-2]: {port: 80, run: stopped}

policies:
  slow: {for: "n*", attempts: 2, cool_down: 90m}

modules: [service]
"""


@pytest.mark.long
def test_values_change_owners_and_what_is_in_force_goes_round(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)

    def typed(*words, given=""):
        return type_in(*words, folder=tmp_path, client=client_of(tmp_path), given=given)

    with served(tmp_path, "--site", tmp_path / "site.yaml", address=f"{NETWORK}.42.1"):
        assert typed("diff", "site.yaml") == (0, "", "")
        assert typed("set", "node:n1", "power=off") == (
            1,
            "",
            told(
                "power of node:n1 belongs to site, who wants on",
                do="have site release it, or take it (--take, take=1)",
            ),
        )
        code, out, errors = typed("set", "node:n1", "power=off", "--take", "-m", "new fans")
        assert (code, errors) == (0, "")
        assert "  wants  power=off, says user:cli\n" in out

        assert typed("export") == (0, EXPORT, "")
        assert typed("diff", "-", given=EXPORT) == (0, "", "")
        assert typed("apply", "-", given=EXPORT)[1].startswith("0 changes written")
        wanted = SITE.replace("n[1-3]: {power: on}", "n[1-2]: {power: on}\n  n3: {power: off}")
        (tmp_path / "site.yaml").write_text(wanted.replace("port: 80", "port: 81"))
        code, out, errors = typed("diff", "site.yaml")
        assert (code, out.splitlines()[1:], errors) == (
            1,
            [
                "+++ site.yaml",
                "-node:n1 power=off  (user:cli)",
                "+node:n1 power=on",
                "-node:n3 power=on",
                "+node:n3 power=off",
                "-service:web@n[1-2] port=80",
                "+service:web@n[1-2] port=81",
            ],
            "",
        )
        code, out, errors = typed("apply", "site.yaml")
        assert (code, out, errors.splitlines()[0]) == (
            1,
            "",
            "error: power of node:n1 belongs to user:cli, who wants off",
        )
        assert typed("apply", "site.yaml", "--take")[1].startswith("4 changes (4 set) written")
        assert typed("diff", "site.yaml") == (0, "", "")

        assert typed("unset", "node:n1", "power", "--take")[0] == 0
        code, out, _ = typed("diff", "site.yaml")
        assert (code, out.splitlines()[2:]) == (1, ["+node:n1 power=on"])
        (tmp_path / "site.yaml").write_text("cluster: other\n")
        assert typed("diff", "site.yaml")[0] == 2
        assert typed("diff", "none.yaml")[0] == 2
    assert typed("diff", "site.yaml")[0] == 3


def test_what_is_no_value_is_told(tmp_path):
    (tmp_path / "client.json").write_text('{"url": "http://127.0.0.1:9", "token": "x"}')
    (tmp_path / "client.json").chmod(0o600)

    assert type_in("set", "node:n1", "power", folder=tmp_path, client=tmp_path / "client.json") == (
        1,
        "",
        told("'power' is not a value", do="write NAME=VALUE, as power=on"),
    )
