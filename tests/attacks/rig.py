"""What is seen of a parent under attack: what it counts, what it takes of memory, what it tells."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haptera.model.entity import node_id
from tests.faults.rig import WEB, Child, Parent
from tests.lab.rig import wait_for
from tests.network import NETWORK

SECOND_HOST, STRANGER_HOST = f"{NETWORK}.43.3", f"{NETWORK}.43.4"
_COUNT = re.compile(r'haptera_datagrams_refused_total\{reason="([^"]+)"\} (\d+)')
_RESIDENT = re.compile(r"VmRSS:\s+(\d+) kB")


@dataclass
class Attacked:
    """The parent, and two of its nodes; the second one is never the attacker's."""

    parent: Parent
    first: Child
    second: Child
    _turn: int = 0

    def refused(self) -> dict[str, int]:
        """How many datagrams were refused so far, by why."""
        status, told = self.parent.raw("GET", "/metrics", b"")
        assert status == 200, told
        return {reason: int(count) for reason, count in _COUNT.findall(told.decode())}

    def resident_bytes(self) -> int:
        """What the parent's process has in memory."""
        found = _RESIDENT.search(Path(f"/proc/{self.parent.pid}/status").read_text())
        assert found is not None
        return int(found[1]) << 10

    def known(self) -> dict[str, Any]:
        """What is known and desired of all entities, without when that was read."""
        status, told = self.parent.ask("GET", "/v1/entities")
        assert status == 200, told
        return {
            one["entity"]: {
                "desired": one["desired"],
                "observed": {
                    name: (seen["value"], seen["known"]) for name, seen in one["observed"].items()
                },
                "attributes": one["attributes"],
            }
            for one in told["entities"]
        }

    def serves(self) -> None:
        """The proof that both nodes are heard, and that the parent met no fault of its own."""
        self.parent.hears(self.first)
        before = len(self.second.heard)
        self.second.say_hello()

        def answered() -> bool:
            self.second.hear()
            return len(self.second.heard) > before

        wait_for(answered)
        assert self.parent.view(str(WEB))["observed"]["run"]["value"] == "running"

    def hears_the_second(self) -> None:
        """The proof that the other node is heard, whatever is done meanwhile, and people are."""
        self._turn += 1
        value = ("busy", "free")[self._turn % 2]
        self.second.report(node_id("n2"), busy=value)

        def shown() -> bool:
            self.second.hear()
            seen = self.parent.view("node:n2")["observed"].get("busy")
            return seen is not None and (seen["value"], seen["known"]) == (value, True)

        wait_for(shown)
