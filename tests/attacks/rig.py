"""What is seen of a parent under attack: what it counts, what it takes of memory, what it tells."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haptera.model.entity import EntityId, node_id
from haptera.runtime import clock
from tests.faults.rig import WEB, Child, Parent
from tests.lab.rig import wait_for
from tests.network import NETWORK

SECOND_HOST, STRANGER_HOST = f"{NETWORK}.43.3", f"{NETWORK}.43.4"
AGAIN_NS = 1_000_000_000
_COUNT = re.compile(r'haptera_datagrams_refused_total\{reason="([^"]+)"\} (\d+)')
_RESIDENT = re.compile(r"VmRSS:\s+(\d+) kB")


@dataclass
class Attacked:
    """The parent, and two of its nodes; the second one is never the attacker's."""

    parent: Parent
    first: Child
    second: Child

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
        """What was seen and is desired of all entities, without when, and whether it holds still.

        A node that says nothing while its parent is attacked is lost, on a slow machine.
        """
        status, told = self.parent.ask("GET", "/v1/entities")
        assert status == 200, told
        return {
            one["entity"]: {
                "desired": one["desired"],
                "observed": {name: seen["value"] for name, seen in one["observed"].items()},
                "attributes": one["attributes"],
            }
            for one in told["entities"]
        }

    def serves(self) -> None:
        """The proof that both nodes are heard, and that the parent met no fault of its own."""
        self._hears(self.first, WEB, "run", ("failed", "running"))
        self.hears_the_second()
        assert "Traceback" not in (self.parent.home / "serve.out").read_text()

    def hears_the_second(self) -> None:
        """The proof that the other node is heard, whatever is done meanwhile, and people are."""
        self._hears(self.second, node_id("n2"), "busy", ("busy", "free"))

    def _hears(self, child: Child, entity: EntityId, name: str, values: tuple[str, ...]) -> None:
        """What the child says is shown; it says it again, as agents do, for datagrams get lost."""
        for value in values:
            said_at = 0

            def shown(value: str = value) -> bool:
                nonlocal said_at
                child.hear()
                if clock.now_ns() - said_at > AGAIN_NS:
                    child.report(entity, **{name: value})
                    said_at = clock.now_ns()
                seen = self.parent.view(str(entity))["observed"].get(name)
                return seen is not None and (seen["value"], seen["known"]) == (value, True)

            wait_for(shown)
