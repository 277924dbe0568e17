"""The module in Perl under a real parent: lamps are lit, and lit again."""

import shutil

import pytest

from tests.cli.rig import client_of, served, typed
from tests.lab.rig import ROOT, wait_for
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(480)]


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl here: apt install perl")
def test_lamps_are_lit_and_lit_again_when_somebody_puts_one_out(tmp_path):
    for name in ("lamp.pl", "site.yaml"):
        shutil.copy(ROOT / "examples" / "lamp_in_perl" / name, tmp_path)

    def lit():
        lamps = [one for one in tmp_path.rglob(".haptera/modules/lamp/l[1-4]") if one.is_file()]
        return sorted(one.name for one in lamps if one.read_text() == "on")

    with served(tmp_path, "--site", tmp_path / "site.yaml", address=f"{NETWORK}.57.1"):
        wait_for(lambda: lit() == ["l1", "l2"])
        client = client_of(tmp_path)
        wait_for(lambda: typed("status", "--check", folder=tmp_path, client=client)[0] == 0)
        (lamp,) = tmp_path.rglob("l1")
        lamp.write_text("off")
        wait_for(lambda: lit() == ["l1", "l2"])
