"""The examples of declared modules: clean, as recorded, and against what they speak to."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from haptera.cli.main import run
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition, EntityView
from haptera.modules.declared.module import kind_served, made
from haptera.modules.declared.parts import AskedEntity
from haptera.modules.declared.terms import Declaration
from haptera.rest.schemas import SiteFile
from haptera.site import parse_site
from haptera.testing.bench import Bench
from tests.lab.rig import wait_for

HERE = Path(__file__).parent
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NAMES = ("outlets", "switch-port")
CONF = "/etc/haptera/snmp"
SNMP = ("snmpd", "snmpget", "snmpset")
lacks_snmp = [one for one in SNMP if shutil.which(one, path="/usr/bin:/usr/sbin") is None]
real_snmp = pytest.mark.skipif(bool(lacks_snmp), reason=f"{lacks_snmp} is not installed")


@pytest.fixture(autouse=True)
def _no_kinds_left() -> Iterator[None]:
    yield
    KINDS.declare({})


def text(name: str) -> str:
    return (EXAMPLES / name / "site.yaml").read_text("utf-8")


def bench(site: str, attributes: dict[str, str]) -> Bench[AskedEntity]:
    """The module that a site declares, with one entity of its kind."""
    (own,) = parse_site([SiteFile("site.yaml", site)], {}).own
    assert own.declares is not None
    terms = msgspec.json.decode(own.declares, type=Declaration)
    kinds = {**KINDS, terms.kind: kind_served(terms)}
    return Bench(made(own.name, terms), attributes, settings={}, kinds=kinds)


def settled(site: str, attributes: dict[str, str], **desired: str) -> EntityView:
    return asyncio.run(bench(site, attributes).settle(desired, within_s=60))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_clean_and_does_what_was_recorded(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = EXAMPLES / name
    assert run(["check", str(folder / "site.yaml")]) == 0
    told = run(["module", "test", str(folder / "site.yaml"), str(folder / "recorded.yaml")])
    assert told == 0, capsys.readouterr().out


@contextmanager
def pdu(folder: Path) -> Iterator[str]:
    """An agent of SNMP whose outlets 1 and 2 are off; its address, and what its clients read."""
    outlets = folder / "outlets"
    outlets.mkdir()
    for number in "12":
        (outlets / number).write_text("2")
    (folder / "snmp.conf").write_text("defVersion 2c\ndefCommunity sesame\n")
    (folder / "snmpd.conf").write_text(
        f"rwcommunity sesame 127.0.0.1\npass .1.3.6.1.4.1.318.1.1.12 {HERE / 'pdu.sh'} {outlets}\n"
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = ["snmpd", "-f", "-Lo", "-C", "-c", "snmpd.conf", "-p", "pid", address]
    env = {"PATH": "/usr/bin:/bin:/usr/sbin", "SNMP_PERSISTENT_DIR": str(folder)}
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(words, cwd=folder, env=env, stdout=log, stderr=log) as agent,
    ):
        try:
            wait_for(lambda: b"NET-SNMP version" in (folder / "log").read_bytes())
            yield address
        finally:
            agent.kill()


@real_snmp
@pytest.mark.net
@pytest.mark.campaign
def test_an_outlet_of_a_pdu_is_switched_by_snmp(tmp_path: Path) -> None:
    site = text("outlets").replace(CONF, str(tmp_path))
    with pdu(tmp_path) as address:
        first = {"pdu": address, "number": "1"}
        assert settled(site, first, power="on").condition is Condition.CONVERGED
        assert [(tmp_path / "outlets" / one).read_text().strip() for one in "12"] == ["1", "2"]
        assert settled(site, first, power="off").condition is Condition.CONVERGED
        assert (tmp_path / "outlets/1").read_text().strip() == "2"

        view = settled(site, {"pdu": address, "number": "9"}, power="on")
        assert "No Such Instance" in f"{view.why} {view.error}"


@real_snmp
@pytest.mark.net
@pytest.mark.campaign
def test_a_pdu_with_another_community_is_not_switched_and_why_says_so(tmp_path: Path) -> None:
    site = text("outlets").replace(CONF, str(tmp_path))
    with pdu(tmp_path) as address:
        quick = "defVersion 2c\ndefCommunity wrong\nretries 0\ntimeout 1\n"
        (tmp_path / "snmp.conf").write_text(quick)
        view = settled(site, {"pdu": address, "number": "1"}, power="on")
    assert "Timeout: No Response" in f"{view.why} {view.error}"
    assert (tmp_path / "outlets/1").read_text() == "2"


@pytest.fixture
def ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ports of a switch that is reached by `ssh`: one of them, which is down."""
    shutil.copy(HERE / "ssh.sh", tmp_path / "ssh")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    folder = tmp_path / "ports"
    folder.mkdir()
    (folder / "Ethernet1").write_text("administratively down")
    return folder


def test_a_port_of_a_switch_is_enabled_and_disabled_over_ssh(ports: Path) -> None:
    one = {"switch": "leaf1", "interface": "Ethernet1"}
    assert settled(text("switch-port"), one, admin="enabled").condition is Condition.CONVERGED
    assert (ports / "Ethernet1").read_text().strip() == "up"
    assert settled(text("switch-port"), one, admin="disabled").condition is Condition.CONVERGED
    assert (ports / "Ethernet1").read_text().strip() == "administratively down"


@pytest.mark.parametrize(
    "value", ["Ethernet1; touch owned", "$(touch owned)", "a b", "`id`", "a|b"]
)
def test_no_value_becomes_a_command_at_the_other_end_of_ssh(ports: Path, value: str) -> None:
    one = {"switch": "leaf1", "interface": value}
    view = settled(text("switch-port"), one, admin="enabled")
    assert "would be read as a command at the other end of ssh" in f"{view.why} {view.error}"
    assert not (ports.parent / "owned").exists()
    assert not Path("owned").exists()
