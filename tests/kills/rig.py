"""A lab as a real process, watched and broken from outside: files, /proc, HTTP and SQLite."""

import http.client
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.kills import checker
from tests.kills.processes import (
    Process,
    all_of,
    descendants,
    holds_socket,
    kill,
    listeners,
    read_process,
    send,
    wait_for,
)
from tests.kills.writer import Api
from tests.network import draw_cluster

SITE = """
cluster: kills
nodes:
  rack[1-2]n[1-3]:
    platform: labnode
    rack: "rack{{1}}"
    address: "127.{{x}}.1.{{index}}"
    bmc: "127.{{x}}.2.{{index}}:4280"
services:
  web: {{command: '"{{python}}" {web}'}}
  note: {{command: "true"}}
  beat: {{command: 'sh {beat}'}}
desired:
  rack[1-2]n[1-3]: {{power: on, agent: up}}
  web@rack[1-2]n[1-3]: {{run: running}}
  note@rack[1-2]n[1-3]: {{run: stopped}}
  beat@rack[1-2]n[1-3]: {{run: running}}
# What is killed so often looks like what does not last, and would be left alone.
policies:
  - {{for: "*", attempts: 1000, back_off: 100ms, back_off_max: 1s}}
lab:
  delay_ms: 200
  delay_rack_ms: 100
"""
WEB = Path(__file__).parent / "web.py"
BEAT = Path(__file__).parent / "beat.sh"
PORT_DEFAULT = 9000  # as web.py has it
AGENT_PORT = 4271  # where an agent answers its parent's questions
NODES = tuple(f"rack{rack}n{n}" for rack in (1, 2) for n in (1, 2, 3))
START_WITHIN_S = 60
STOP_WITHIN_S = 60
STEP_WITHIN_S = 60
# Whatever is started again by itself is so before.
GIVEN_UP_WITHIN_S = 20
ASK_WITHIN_S = 30


class Lab:
    """One lab in a directory of its own, by default of six nodes."""

    def __init__(self, directory: Path, text: str = SITE) -> None:
        self.directory = directory
        self.root = directory / ".haptera"
        self.state = self.root / "parent" / "state.db"
        self.output = directory / "lab.out"
        self._beats = directory / "beats"
        self._beats.mkdir()
        for node in NODES:
            self.beats(node).touch()
        self._hand = 0
        site = directory / "site.yaml"
        site.write_text(text.format(web=f'"{WEB}"', beat=f'"{BEAT}" "{self._beats}"'))
        draw_cluster(directory)
        command = (sys.executable, "-m", "haptera", "lab")
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, "--site", str(site), "--dir", str(directory)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @contextmanager
    def running(self) -> Iterator[None]:
        """From the first start to an end that leaves nothing behind, whatever happens between."""
        try:
            wait_for("the lab runs", self._is_up, START_WITHIN_S)
            self._state = sqlite3.connect(f"file:{self.state}?mode=ro", uri=True)
            with closing(self._state):
                yield
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            if (self.root / "lab" / "cluster").exists():
                # What is being killed may begin something meanwhile.
                while left := self.leftovers():
                    for process in left:
                        kill(process)

    def stop(self) -> int:
        """Interrupt it, as Ctrl-C would; its exit status."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(STOP_WITHIN_S)

    def leftovers(self) -> list[Process]:
        """All living processes of this lab, services and keepers included."""
        cluster = (self.root / "lab" / "cluster").read_text().strip()
        return all_of(f"HAPTERA_LAB={cluster}", self.directory)

    def api(self) -> Api:
        return Api(self.root / "client.json")

    # Who is who

    def parent(self) -> Process:
        return self._of_file(self.root / "parent" / "parent.pid")

    def agent(self, node: str) -> Process:
        return self._of_file(self.root / "nodes" / node / "agent.pid")

    def module(self, owner: Process, name: str) -> Process:
        """A module's process of a parent or an agent."""
        what, find = f"module {name} runs", partial(_module, owner, name)
        try:
            return wait_for(what, find, GIVEN_UP_WITHIN_S)
        except AssertionError:
            # Killed six times within ten minutes, it is left alone until somebody asks for it.
            with closing(self.api()) as api:
                api.ask("POST", f"/v1/entities/module:{name}/retry")
        return wait_for(what, find, STEP_WITHIN_S)

    def zygote(self, owner: Process, module: str) -> Process:
        """The process that forks the owner's modules: the parent of any of them."""
        return wait_for("a zygote runs", lambda: _zygote(owner, module), STEP_WITHIN_S)

    def keeper(self, node: str) -> Process | None:
        return self._of_state(node, "keeper")

    def service(self, node: str) -> Process | None:
        return self._of_state(node, "service")

    # The BMCs

    def commands(self, node: str) -> Path:
        return self.root / "nodes" / node / "bmc" / "commands.jsonl"

    def cut(self, node: str) -> None:
        """Take the node's power away, behind everybody's back."""
        self._hand += 1
        order = {"power": "off", "command": f"{checker.BY_HAND}{self._hand}"}
        assert self._ask_bmc(node, "/power", order) == 202

    def set_delay(self, node: str, delay_ms: int) -> None:
        """From now on the node's commands have their effect so much later."""
        assert self._ask_bmc(node, "/faults", {"delay_ms": delay_ms}) == 200

    def taken(self, node: str, command: str) -> bool:
        """Whether the BMC was ever sent this command, once it has read all that it was sent."""
        for _ in range(2):
            assert self._ask_bmc(node, "/faults", {}) == 200
        return self.was_sent(node, command)

    def was_sent(self, node: str, command: str) -> bool:
        rows = checker.read_rows(self.commands(node))
        return any("verdict" in row and row["command"] == command for row in rows)

    def settled(self, node: str) -> bool:
        """Whether it has power, which was read since, and nothing is under way for it."""
        rows = self._commanded(node)
        # Not what was read between a command, of the test maybe, and its effect.
        last = next((row for row in reversed(rows) if row.get("verdict") == "accepted"), None)
        over = last is not None and any(
            "effect" in row and row["command"] == last["command"] for row in rows
        )
        return over and rows[-1].get("read") == "on" and self.intent(node) is None

    # The steps

    def beats(self, node: str) -> Path:
        """Where the node's `beat` writes down each of its starts."""
        return self._beats / node

    def steps(self) -> int:
        """How many steps there were until now, by what they had their effect on."""
        return sum(
            checker.steps(self._commanded(node), checker.read_rows(self.beats(node)))
            for node in NODES
        )

    # What is durable, and what is in force

    def intent(self, node: str) -> str | None:
        """The id of the open intent for this node, by the state file."""
        query = "SELECT id FROM intents WHERE entity = ?"
        row = self._state.execute(query, (f"node:{node}",)).fetchone()
        return None if row is None else str(row[0])

    def agent_means_something(self, node: str, name: str | None = None) -> bool:
        """Whether the node's agent has an open intent, for what has this name, by its journal."""
        file = self.root / "nodes" / node / "run" / "intents.json"
        try:
            intents = json.loads(file.read_text())["open"]
        except FileNotFoundError:
            return False
        return any(name in (None, one["entity"]["name"]) for one in intents)

    def unhealed(self, api: Api) -> list[str]:
        """All that is not as desired: by the API, by HTTP, and by the kernel's account."""
        answer = api.ask("GET", "/v1/entities")
        if answer is None or answer[0] != 200:
            return ["the API does not answer"]
        entities = [one for one in answer[2]["entities"] if "policy:" not in one["entity"]]
        if wrong := [_standing(one) for one in entities if one["condition"] != "converged"]:
            return wrong
        ports = {one["entity"]: _port(one["desired"]) for one in entities}
        return [
            text
            for node in NODES
            if (text := self._unserved(node, ports[f"service:web@{node}"]))
            or (text := self._outdated(node, ports[f"service:beat@{node}"]))
        ]

    def _outdated(self, node: str, port: int) -> str | None:
        last = checker.read_rows(self.beats(node))[-1]["started"]
        return None if last == port else f"{node} should beat at {port}, not at {last}"

    def _unserved(self, node: str, port: int) -> str | None:
        address = (self.root / "nodes" / node / "address").read_text().strip()
        found, service = listeners(address), self.service(node)
        found.pop(AGENT_PORT, None)
        if set(found) != {port} or service is None or not holds_socket(service.pid, found[port]):
            return f"{node} should listen on {port}: {found}, {service}"
        status, body = _fetch(address, port)
        return None if (status, body) == (200, node) else f"{node} answers {status} {body!r}"

    def _commanded(self, node: str) -> list[checker.Row]:
        """The rows of its BMC; none where that has only begun."""
        commands = self.commands(node)
        return checker.read_rows(commands) if commands.exists() else []

    def _is_up(self) -> bool:
        assert self._process.poll() is None, self.output.read_text()
        return "status page" in self.output.read_text()

    def _of_file(self, file: Path) -> Process:
        """The living process whose number is in the file; one of this lab's, by its descent."""

        def find() -> Process | None:
            try:
                process = read_process(int(file.read_text()))
            except FileNotFoundError:
                return None
            ours = {one.pid for one in descendants(self._process.pid)}
            return process if process is not None and process.pid in ours else None

        return wait_for(f"{file} names a process", find, STEP_WITHIN_S)

    def _of_state(self, node: str, word: str) -> Process | None:
        """The service or keeper that lives, by the keeper's notes."""
        file = self.root / "nodes" / node / "run" / "services" / "web" / "state"
        try:
            lines = [line.split() for line in file.read_text().splitlines()]
        except FileNotFoundError:
            return None
        pid, started = next((int(one[1]), int(one[2])) for one in lines if one[0] == word)
        process = read_process(pid)
        return process if process is not None and process.started == started else None

    def _ask_bmc(self, node: str, path: str, body: Any) -> int:
        address = (self.commands(node).parent / "address").read_text().strip()
        with closing(http.client.HTTPConnection(address, timeout=ASK_WITHIN_S)) as connection:
            connection.request("POST", path, json.dumps(body))
            return connection.getresponse().status


@contextmanager
def stopped(process: Process) -> Iterator[None]:
    """SIGSTOP, and go on in the end; one that has ended meanwhile stands still too."""
    send(process, signal.SIGSTOP)
    try:
        wait_for("it stands still", lambda: _stands_still(process), ASK_WITHIN_S)
        yield
    finally:
        send(process, signal.SIGCONT)


def is_at_work(module: Process) -> bool:
    """Whether the module has begun to start something, or is no more."""
    return read_process(module.pid) is None or bool(descendants(module.pid))


def _stands_still(process: Process) -> bool:
    now = read_process(process.pid)
    return now is None or now.state == "T"


def _module(owner: Process, name: str) -> Process | None:
    comm = f"module {name}"[:15]
    return next((one for one in descendants(owner.pid) if one.comm == comm), None)


def _zygote(owner: Process, module: str) -> Process | None:
    process = _module(owner, module)
    return None if process is None else read_process(process.parent)


def _port(desired: Any) -> int:
    return int(desired["port"]["value"]) if "port" in desired else PORT_DEFAULT


def _standing(one: Any) -> str:
    return f"{one['entity']} is {one['condition']}: {one['why']}"


def _fetch(address: str, port: int) -> tuple[int, str]:
    with closing(http.client.HTTPConnection(address, port, timeout=ASK_WITHIN_S)) as connection:
        try:
            connection.request("GET", "/")
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
