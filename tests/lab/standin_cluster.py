"""The plainest parent and agent that bring the quickstart up: what `check.sh` is tried on."""

import http.client
import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from haptera.lab.tree import read_process

WEB = Path(__file__).parents[2] / "examples" / "quickstart" / "web.py"
PORT = 8080
LATE_ROUNDS = 40


def agent(arguments: dict[str, Any], _: list[int]) -> None:
    """Keep one web server running; find the one that an earlier agent left."""
    file = Path(arguments["directory"]) / "services" / "web" / "state"
    file.parent.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "HAPTERA_NODE": arguments["node"],
        "HAPTERA_ADDRESS": arguments["address"],
        "HAPTERA_PORT": str(PORT),
    }
    while True:
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        process = read_process(_service(file)) if file.exists() else None
        if process is None or process.dead:
            started = subprocess.Popen(
                [sys.executable, str(WEB)], env=environment, start_new_session=True
            )
            draft = file.with_suffix(".new")
            draft.write_text(f"service {started.pid} 0\n")
            draft.replace(file)
        select.select((), (), (), 0.05)


def careless_agent(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """One that starts its server anew when it comes back, as if none were there."""
    file = Path(arguments["directory"]) / "services" / "web" / "state"
    if file.exists():
        with suppress(ProcessLookupError):
            os.kill(_service(file), 9)
        file.unlink()
    agent(arguments, descriptors)


def parent(arguments: dict[str, Any], _: list[int]) -> None:
    """Switch on what is off; command nothing again that may still take effect."""
    nodes = Path(arguments["directory"]).parent / "nodes"
    sent: dict[str, int] = {}
    for turn in range(1 << 30):
        for home in sorted(nodes.iterdir()):
            host, port = (home / "bmc" / "address").read_text().strip().split(":")
            if _ask(host, port, "GET", None)[1].get("power") == "on":
                sent.pop(home.name, None)
            # What an earlier parent sent may still take effect, too: a parent begins with a wait.
            elif turn - sent.setdefault(home.name, 0) >= LATE_ROUNDS:
                order = {"power": "on", "command": f"{os.getpid()}-{turn}-{home.name}"}
                if _ask(host, port, "POST", order)[0] == http.client.ACCEPTED:
                    sent[home.name] = turn
        select.select((), (), (), 0.05)


def _service(file: Path) -> int:
    return int(file.read_text().split(" ")[1])


def _ask(host: str, port: str, method: str, order: dict[str, str] | None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(host, int(port), timeout=2)
    try:
        connection.request(method, "/power", None if order is None else json.dumps(order))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
