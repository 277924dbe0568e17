"""`haptera bmc check`: what a BMC says of itself, asked as its module asks it."""

import pytest

from tests.cli.rig import client_of, served, typed
from tests.lab.rig import wait_for
from tests.modules.redfish.fake_service import Asked, Told, fake_service, system, usual

pytestmark = [pytest.mark.net, pytest.mark.slow]

SITE = """\
cluster: checked
nodes:
  n1: {{platform: redfish, bmc: "{bmc}", bmc_quirks: no-shutdown}}
  n2: {{rack: "1"}}
modules:
  redfish: {{settings: {{user: operator, password: {{secret: "bmc/{{name}}"}}}}}}
"""
MANAGER = "/redfish/v1/Managers/1"
KNOWN = "Basic b3BlcmF0b3I6cmlnaHQ="


def answers(asked: Asked) -> Told:
    if asked.headers["Authorization"] != KNOWN:
        return Told(401)
    if asked.path == MANAGER:
        return Told(body={"FirmwareVersion": "2.88"})
    managed = {"ManagedBy": [{"@odata.id": MANAGER}]}
    return usual(asked, system(Model="X1", Manufacturer="Supermicro", Links=managed))


def test_a_bmc_says_what_it_is_and_nothing_is_changed(tmp_path):
    with fake_service(tmp_path / "service", answers) as service:
        (tmp_path / "site.yaml").write_text(SITE.format(bmc=service.address))
        assert typed("secret", "set", "bmc/n1", folder=tmp_path, given="right\n")[0] == 0
        with served(tmp_path, "--site", tmp_path / "site.yaml"):
            wait_for(lambda: service.asked)  # The module asks it too, and pins it.
            wait_for(lambda: list((tmp_path / ".haptera" / "modules").rglob("n1.pin")))
            check = ("bmc", "check", "n1")
            code, told, errors = typed(*check, folder=tmp_path, client=client_of(tmp_path))
            assert (code, errors) == (0, "")
            rows = dict(line.split(maxsplit=1) for line in told.replace("boot s", "s").splitlines())
            assert rows["BMC"] == service.address
            assert (rows["power"], rows["maker"], rows["model"]) == ("on", "Supermicro", "X1")
            assert rows["firmware"] == "2.88"
            assert rows["resets"] == "On, ForceOff, GracefulShutdown"
            assert rows["quirks"] == "boot-mode, no-shutdown"
            assert rows["latency"].endswith("ms for one reading of the power")
            assert service.changes == []

            service.certify_anew()
            code, told, errors = typed(*check, folder=tmp_path, client=client_of(tmp_path))
            assert (code, told) == (1, "")
            assert "has another certificate than before" in errors

            other = typed("bmc", "check", "n2", folder=tmp_path, client=client_of(tmp_path))
            assert other[0] == 1
            assert "name a node with platform: ipmi or redfish" in other[2]
