"""A virtual node over its BMC: power, refusals, the record, and what dies with the power."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from haptera.lab.tree import read_process
from tests.kills.processes import lives
from tests.lab.rig import WAIT_S_MAX, chassis, read_pid, wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]

BOOT = {"token": "s3cret-token", "ca": "-----BEGIN CERTIFICATE-----", "parent": "127.7.0.1:4271"}


def test_power_goes_on_and_off_again_and_every_command_is_on_record(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        assert node.power == "off"
        node.switch("on", "c1")
        node.switch("off", "c2")
        assert node.record == [
            {"command": "c1", "power": "on", "verdict": "accepted"},
            {"command": "c1", "effect": "on"},
            {"command": "c2", "power": "off", "verdict": "accepted"},
            {"command": "c2", "effect": "off"},
        ]


def test_reads_are_on_record_between_the_commands(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        node.ask("GET", "/power")
        node.switch("on", "c1")
        rows = [json.loads(line) for line in node.commands.read_text().splitlines()]
        effect = next(i for i, row in enumerate(rows) if "effect" in row)
        assert rows[0]["read"] == "off"
        assert {row["read"] for row in rows[effect + 1 :]} == {"on"}
        assert [row["at_ns"] for row in rows] == sorted(row["at_ns"] for row in rows)


def test_a_bmc_that_refuses_says_why_and_does_nothing(tmp_path: Path) -> None:
    with chassis(tmp_path, refuse="chassis interlock is open") as node:
        order = {"power": "on", "command": "c1"}
        assert node.ask("POST", "/power", order) == (409, {"error": "chassis interlock is open"})
        assert node.power == "off"
        assert node.record == [{"command": "c1", "power": "on", "verdict": "refused"}]
        assert node.ask("POST", "/faults", {"refuse": None})[0] == 200
        node.switch("on", "c2")


def test_an_idle_bmc_says_yes_each_time_and_does_nothing(tmp_path: Path) -> None:
    with chassis(tmp_path, lies="idle") as node:
        for command in ("c1", "c2"):
            order = {"power": "on", "command": command}
            wait_for(lambda order=order: node.ask("POST", "/power", order)[0] == 202)
        assert node.power == "off"
        assert [row["verdict"] for row in node.record if row["command"] == "c1"] == ["accepted"]


def test_a_bmc_gone_astray_tells_of_another_machine(tmp_path: Path) -> None:
    with chassis(tmp_path, lies="astray") as node:
        node.switch("on", "c1")
        assert read_pid(tmp_path / "agent.pid") is None
        assert node.record[1:] == [{"command": "c1", "elsewhere": "on"}]


def test_a_bmc_that_flaps_takes_the_power_away_again(tmp_path: Path) -> None:
    with chassis(tmp_path, lies="flaps") as node:
        node.switch("on", "c1")
        wait_for(lambda: node.power == "off" or None)
        assert node.record[2:] == [{"flaps": "off"}]


def test_a_bmc_that_resets_obeys_and_answers_nobody(tmp_path: Path) -> None:
    with chassis(tmp_path, lies="resets") as node:
        order = b'{"power":"on","command":"c1"}'
        head = b"POST /power HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(order)
        assert node.raw(head + order) == b""
        wait_for(lambda: node.power_if_answered() == "on" or None)
        assert node.record[1:] == [{"command": "c1", "effect": "on"}]


def test_a_second_command_is_refused_while_one_is_in_flight(tmp_path: Path) -> None:
    with chassis(tmp_path, delay_ms=60_000) as node:
        assert node.ask("POST", "/power", {"power": "on", "command": "c1"})[0] == 202
        assert node.ask("POST", "/power", {"power": "off", "command": "c2"}) == (
            409,
            {"error": "busy with command c1"},
        )
        assert node.power == "off"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"power=off", 400),
        (b"[" * 60_000, 400),
        (b"\xff\xfe", 400),
        (b'{"power":"off"}', 400),
        (b'{"power":"reboot","command":"c"}', 400),
        (b'{"power":"off","command":""}', 400),
        (b'{"power":"off","command":"c","force":true}', 400),
        (b'{"power":"on","command":"c","boot":{"token":"t"}}', 400),
        (b" " * 70_000, 413),
    ],
)
def test_a_wrong_body_is_told_so(tmp_path: Path, body: bytes, status: int) -> None:
    with chassis(tmp_path) as node:
        told, answer = node.ask("POST", "/power", body)
        assert (told, list(answer)) == (status, ["error"])
        assert not node.commands.exists()


def test_a_wrong_request_ends_its_own_connection_only(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        assert node.raw(b"GET /power HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n").startswith(
            b"HTTP/1.1 431"
        )
        assert node.raw(b"DELETE /power HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 405")
        assert node.raw(b"GET /power HT") == b""
        assert node.ask("GET", "/nothing")[0] == 404
        assert node.power == "off"


def test_a_silent_bmc_answers_nothing_and_does_nothing(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        assert node.ask("POST", "/faults", {"silent": True})[0] == 200
        assert (
            node.raw(
                b'POST /power HTTP/1.1\r\nContent-Length: 30\r\n\r\n{"power":"on","command":"c11"}'
            )
            == b""
        )
        assert node.ask("POST", "/faults", {"silent": False})[0] == 200
        assert node.power == "off"
        assert node.record == [{"command": "c11", "power": "on", "verdict": "unanswered"}]


def test_events_tell_the_power_now_and_each_change(tmp_path: Path) -> None:
    with chassis(tmp_path) as node, socket.create_connection(node.address, WAIT_S_MAX) as stream:
        stream.sendall(b"GET /events HTTP/1.1\r\n\r\n")
        lines = stream.makefile("rb")
        while lines.readline() != b"\r\n":
            pass
        assert json.loads(lines.readline()) == {"power": "off"}
        node.switch("on", "c1")
        assert json.loads(lines.readline()) == {"power": "on"}


def test_the_boot_secret_reaches_the_agent_and_nothing_else(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        node.switch("on", "c1", BOOT)
        seen = json.loads((node.run / f"seen-{node.agent}").read_text())
        assert json.loads(seen.pop("secret")) == BOOT
        assert BOOT["token"] not in json.dumps(seen)
        (node.run / f"seen-{node.agent}").unlink()
        for file in tmp_path.rglob("*"):
            assert not file.is_file() or BOOT["token"] not in file.read_text()


def test_a_killed_agent_starts_again_without_any_power_action(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        node.switch("on", "c1", BOOT)
        first = node.agent
        os.kill(first, signal.SIGKILL)
        second = node.agent_other_than(first)
        assert json.loads(json.loads((node.run / f"seen-{second}").read_text())["secret"]) == BOOT
        assert node.power == "on"
        assert node.record == [
            {"command": "c1", "power": "on", "verdict": "accepted"},
            {"command": "c1", "effect": "on"},
        ]


def test_an_orphan_lives_on_when_the_agent_dies_and_is_buried_when_it_ends(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        node.switch("on", "c1")
        first, orphan = node.agent, wait_for(lambda: read_pid(node.run / "daemon"))
        os.kill(first, signal.SIGKILL)
        node.agent_other_than(first)
        assert lives(orphan)
        os.kill(orphan, signal.SIGKILL)
        wait_for(lambda: read_process(orphan) is None or None)


def test_a_power_cut_ends_even_a_daemon_that_left_its_session(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        node.switch("on", "c1")
        pids = [node.agent, wait_for(lambda: read_pid(node.run / "daemon"))]
        pids.append(wait_for(lambda: read_pid(tmp_path / "init.pid")))
        assert all(lives(pid) for pid in pids)
        node.switch("off", "c2")
        assert not any(lives(pid) for pid in pids)
        assert not (tmp_path / "init.pid").exists()


def test_a_killed_init_takes_the_node_with_it_and_power_reads_off(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        node.switch("on", "c1")
        pids = [node.agent, wait_for(lambda: read_pid(node.run / "daemon"))]
        os.kill(wait_for(lambda: read_pid(tmp_path / "init.pid")), signal.SIGKILL)
        wait_for(lambda: node.power == "off" or None)
        assert not any(lives(pid) for pid in pids)
        assert node.record[2:] == [{"found": "off"}]
        node.switch("on", "c2")
        assert node.agent not in pids


def test_a_killed_bmc_comes_back_and_reads_the_power_that_is(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        node.switch("on", "c1")
        agent = node.agent
        node.kill_bmc()
        assert wait_for(node.power_if_answered) == "on"
        assert node.agent == agent


def test_a_boot_finds_an_empty_run_directory(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        node.switch("on", "c1")
        first = node.agent
        node.switch("off", "c2")
        node.switch("on", "c3")
        node.agent_other_than(first)
        assert not (node.run / f"seen-{first}").exists()
