"""What breaks a rack that runs, tried on processes and ports that stand in for its machines."""

import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest

from haptera.cli.main import OK, REFUSED, run
from haptera.lab.breaking import OTHER_SERVER
from haptera.lab.layout import Places
from haptera.lab.leftovers import note_started
from haptera.lab.machine_bmc import Language, MachineBmcConfig, certify, write_bmc
from haptera.lab.redfish_bmc import CERTIFICATE, KEY, shown_power
from haptera.modules.netboot import dhcp
from haptera.modules.netboot.answers import answer
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.offers import Here
from tests.kills.processes import wait_for
from tests.modules.test_netboot_obligations import ACK, OFFER, offered
from tests.network import why_no_networks

pytestmark = pytest.mark.net

# A chassis: it starts a BMC and a machine, says who they are, and reaps them until it is killed.
CHASSIS = """
sleep 600 & echo $! >"$0/bmc/bmc.pid"
sleep 600 & echo $! >"$0/qemu.pid"
echo ready
wait
read -r _
"""
# What sends a datagram from the rack's bridge, and reads what comes to the card of a machine.
SEND = """
import socket, sys
from haptera.modules.netboot import dhcp

card = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
card.bind(("card", 0))
card.settimeout(30)
parent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
parent.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
parent.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"br0")
parent.bind(("", 67))
parent.sendto(bytes.fromhex(sys.argv[1]), ("255.255.255.255", 68))
print(card.recv(2048)[42:].hex())
"""
# Instead of a machine's port, a cable whose other end is held here.
WIRE = """\
link add machine0 type veth peer name card
ip link set card up
ip link set br0 up
ip addr add 10.9.0.1/24 dev br0"""
# The network of a rack: a bridge, with the port of one machine.
NETWORK = """
ip link set lo up
ip link add br0 type bridge
ip tuntap add dev machine0 mode tap
ip link set machine0 master br0 up
"""


@contextmanager
def chassis(directory: Path, *around: str, before: str = "") -> Iterator[int]:
    """A lab with the machine n1, as its record tells it; yields who holds the machine."""
    places = Places(directory)
    home = places.node("n1")
    (home / "bmc").mkdir(parents=True)
    places.lab.mkdir()
    (home / "port").write_text("machine0\n")
    command = [*around, "bash", "-c", before + CHASSIS, str(home)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            note_started(places, "machine n1", process.pid)
            yield process.pid
        finally:
            for file in ("bmc/bmc.pid", "qemu.pid"):
                subprocess.run(["kill", "-9", (home / file).read_text().strip()], check=False)
            process.kill()


def state(directory: Path, file: str) -> str | None:
    """The letter of the process whose number is in this file of n1; None once it is gone."""
    pid = (Places(directory).node("n1") / file).read_text().strip()
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def runs(directory: Path, file: str) -> bool:
    return state(directory, file) not in ("T", "Z", None)


def lab_break(directory: Path, *words: str) -> int:
    return run(["lab", "break", *words, "--dir", str(directory)])


def test_a_bmc_hangs_until_it_is_mended(tmp_path: Path) -> None:
    with chassis(tmp_path):
        assert lab_break(tmp_path, "bmc", "n1") == OK
        wait_for("it is stopped", lambda: state(tmp_path, "bmc/bmc.pid") == "T", within_s=60)
        assert runs(tmp_path, "qemu.pid")
        assert lab_break(tmp_path, "bmc", "n1", "--mend") == OK
        wait_for("it goes on", lambda: runs(tmp_path, "bmc/bmc.pid"), within_s=60)


def test_what_is_broken_for_a_time_is_mended_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chassis(tmp_path):
        assert lab_break(tmp_path, "bmc", "n1", "--for", "1ms") == OK
        assert capsys.readouterr().out == "bmc of n1: broken\nbmc of n1: mended\n"
        wait_for("it goes on", lambda: runs(tmp_path, "bmc/bmc.pid"), within_s=60)


@pytest.mark.parametrize("language", Language)
def test_a_bmc_says_that_its_machine_is_on_until_it_is_mended(
    language: Language, tmp_path: Path
) -> None:
    bmc = Places(tmp_path).node("n1") / "bmc"

    def reading() -> str:
        if language is Language.REDFISH:
            return shown_power(bmc)
        return subprocess.check_output(["sh", "chassis", "get", "power"], cwd=bmc, text=True)

    with chassis(tmp_path):
        (bmc / "power").write_text("0\n")
        (tmp_path / "password").write_text("s3cret")
        if language is Language.IPMI:
            write_bmc(MachineBmcConfig(language, "n1", "", "", 1, "", f"{tmp_path}/password"), bmc)
        readings = [reading()]
        for words in (["reading", "n1"], ["reading", "n1", "--mend"]):
            assert lab_break(tmp_path, *words) == OK
            readings.append(reading())
    off, on = ("Off", "On") if language is Language.REDFISH else ("power:0\n", "power:1\n")
    assert readings == [off, on, off]


def test_a_bmc_has_another_certificate_until_it_is_mended(tmp_path: Path) -> None:
    with chassis(tmp_path):
        home = Places(tmp_path).node("n1") / "bmc"
        (home / "address").write_text("127.1.2.1:8443\n")
        certify(home, "127.1.2.1")
        first = {name: (home / name).read_text() for name in (CERTIFICATE, KEY)}
        for words in (["n1"], ["n1"], ["n1", "--mend"]):
            assert lab_break(tmp_path, "pin", *words) == OK
            # Its chassis starts it anew, with what is there now.
            wait_for("it ends", lambda: not runs(tmp_path, "bmc/bmc.pid"), within_s=60)
            assert runs(tmp_path, "qemu.pid")
            shown = {name: (home / name).read_text() for name in first}
            assert (shown == first) is ("--mend" in words)
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(home / CERTIFICATE, home / KEY)


def test_a_machine_is_killed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with chassis(tmp_path):
        assert lab_break(tmp_path, "machine", "n1") == OK
        wait_for("it is gone", lambda: not runs(tmp_path, "qemu.pid"), within_s=60)
        assert lab_break(tmp_path, "machine", "n1") == REFUSED
        assert "n1 does not run" in capsys.readouterr().err


def test_nobody_else_is_killed_who_has_the_number_of_a_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chassis(tmp_path):
        file = Places(tmp_path).node("n1") / "qemu.pid"
        own = file.read_text()
        file.write_text(f"{os.getpid()}\n")
        try:
            assert lab_break(tmp_path, "machine", "n1") == REFUSED
        finally:
            file.write_text(own)
        assert "n1 does not run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("bmc n7", "this lab has no virtual machine 'n7'"),
        ("bmc n1 --for soon", "'soon' is not a duration"),
        ("bmc", "Name a machine, except for dhcp"),
        ("dhcp2 n1", "Name a machine, except for dhcp"),
        ("pin n1", "the BMC of n1 has no certificate"),
        ("dhcp n1", "Name a machine, except for dhcp"),
        ("machine n1 --mend", "Its cluster switches a machine on again"),
        ("bmc n1 --mend --for 1s", "Either --for or --mend"),
    ],
)
def test_what_cannot_be_broken_is_told(
    words: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chassis(tmp_path):
        assert lab_break(tmp_path, *words.split()) != OK
        assert told in capsys.readouterr().err
        assert runs(tmp_path, "bmc/bmc.pid")


def test_a_lab_that_does_not_run_cannot_be_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chassis(tmp_path):
        pass
    assert lab_break(tmp_path, "bmc", "n1") == REFUSED
    assert "no virtual machines of a lab run here" in capsys.readouterr().err


def test_options_that_start_a_lab_are_refused_before_break(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", "--dir", str(tmp_path), "break", "bmc", "n1"]) != OK
    assert "Options of `lab` start a lab" in capsys.readouterr().err


@pytest.mark.skipif((why := why_no_networks()) is not None, reason=str(why))
@pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="/dev/net/tun is not there")
def test_a_cable_and_dhcp_are_those_of_the_labs_own_network(tmp_path: Path) -> None:
    with chassis(tmp_path, "unshare", "-n", before=NETWORK) as pid:

        def there(*command: str) -> str:
            enter = ["nsenter", f"--net=/proc/{pid}/ns/net", *command]
            return subprocess.run(enter, capture_output=True, text=True, check=True).stdout

        assert ",UP" in there("ip", "link", "show", "machine0")
        assert lab_break(tmp_path, "cable", "n1") == OK
        assert ",UP" not in there("ip", "link", "show", "machine0")
        assert lab_break(tmp_path, "cable", "n1", "--mend") == OK
        assert ",UP" in there("ip", "link", "show", "machine0")

        if shutil.which("nft") is None:
            pytest.skip("nft corrupts DHCP: apt install nftables")
        for _ in range(2):
            assert lab_break(tmp_path, "dhcp") == OK
            assert "udp sport 67 @th,96,32 set 0x0" in there("nft", "list", "ruleset")
        for _ in range(2):
            assert lab_break(tmp_path, "dhcp", "--mend") == OK
            assert there("nft", "list", "ruleset") == ""


@pytest.mark.skipif((why := why_no_networks()) is not None, reason=str(why))
@pytest.mark.skipif(shutil.which("nft") is None, reason="nft forges offers: apt install nftables")
def test_offers_are_of_a_second_server_until_it_is_mended(tmp_path: Path) -> None:
    here, offer = Here(IPv4Interface("10.9.0.1/24"), 4281), offered()
    replies = [answer(one, offer, here) for one in (OFFER, ACK)]
    made, given = (one for one in replies if one is not None)
    network = NETWORK.replace("tuntap add dev machine0 mode tap", WIRE)
    with chassis(tmp_path, "unshare", "-n", before=network) as pid:

        def comes(message: DhcpMessage) -> DhcpMessage | None:
            enter = ["nsenter", f"--net=/proc/{pid}/ns/net", sys.executable, "-c", SEND]
            told = subprocess.check_output([*enter, dhcp.encode(message).hex()], text=True)
            return dhcp.parse(bytes.fromhex(told))

        assert comes(made) == made
        assert lab_break(tmp_path, "dhcp2") == OK
        theirs = {**made.options, dhcp.SERVER: IPv4Address(OTHER_SERVER).packed}
        assert comes(made) == replace(made, options=theirs)
        assert comes(given) == given
        assert lab_break(tmp_path, "dhcp2", "--mend") == OK
        assert comes(made) == made
