"""What it costs to say which of 10,000 nodes are meant, and to fold their names.

    python -m benchmarks.selecting [ROUNDS]

A cluster of 10,000 nodes with a service each, half of the nodes known to be on. What is meant is
found as `status SELECTOR` has it found; the baseline is the same answer by a list comprehension
over plain dicts, written for that one question. Folding and expanding are compared with
ClusterShell's, where it is installed. Figures are CPU time, the least of all rounds; the ratios
are what counts.
"""

import sys
from collections.abc import Callable
from time import process_time_ns
from typing import NamedTuple

from haptera.core.state.selecting import meant
from haptera.core.state.table import EntityTable
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.model.changes import Declare
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Fact, Method
from haptera.planner.domain.pieces import at_once
from haptera.selectors.nodeset import expand, fold, parse_nodeset
from haptera.selectors.selector import parse_selector

try:
    from ClusterShell.NodeSet import NodeSet as ShellSet  # type: ignore[import-untyped]
except ImportError:
    ShellSet = None

ROUNDS = 20
RACKS, IN_RACK = 250, 40
NAMES = [f"rack{rack}n{n:02}" for rack in range(1, RACKS + 1) for n in range(1, IN_RACK + 1)]
# What is left after many have failed.
SCATTERED = [f"n{number * 2 + number % 7}" for number in range(5_000)]
LARGE = "rack[1-400]n[001-500]"
NOW = 10**15
KNOWN = Fact("on", "lab", Method.READ, NOW, 0)

Plain = dict[str, str | None]


class Asked(NamedTuple):
    """A selector, and the plain question that it stands for."""

    text: str
    plain: Callable[[Plain], bool]


ASKED = [
    Asked("rack7n[01-40]", lambda one: one["rack"] == "rack7"),
    Asked("node:rack[1-9]n*", lambda one: one["kind"] == "node" and one["rack"] in NINE),
    Asked("node:* and power!=on", lambda one: one["kind"] == "node" and one["power"] != "on"),
    Asked(
        "service:web@@rack:rack7", lambda one: one["kind"] == "service" and one["rack"] == "rack7"
    ),
    Asked(
        "service:* and node.power=on and not rack[1-9]n*",
        lambda one: one["kind"] == "service" and one["power"] == "on" and one["rack"] not in NINE,
    ),
]
NINE = {f"rack{number}" for number in range(1, 10)}


def cluster() -> tuple[EntityTable, list[Plain]]:
    table, plain = EntityTable(KINDS), list[Plain]()
    for number, name in enumerate(NAMES):
        rack = name.partition("n")[0]
        table.apply(Declare(node_id(name), {"platform": "lab", "rack": rack}, "site"), 1)
        table.apply(Declare(EntityId("service", "web", name), {}, "site"), 1)
        if number % 2:
            table.make(node_id(name)).belief.known["power"] = KNOWN
        power = "on" if number % 2 else None
        for kind in ("node", "service"):
            plain.append({"kind": kind, "name": name, "rack": rack, "power": power})
    return table, plain


def least_ms(rounds: int, run: Callable[[], object]) -> float:
    took = []
    for _ in range(rounds):
        before = process_time_ns()
        run()
        took.append(process_time_ns() - before)
    return min(took) / 1e6


def ask(asked: Asked, table: EntityTable, plain: list[Plain], rounds: int) -> str:
    """How long it takes to find what is meant, the selector being read already."""
    selectors = [parse_selector(asked.text)]
    found = len(at_once(meant(table, selectors, NOW)))
    assert found == sum(map(asked.plain, plain)), asked.text
    ms = least_ms(rounds, lambda: at_once(meant(table, selectors, NOW)))
    plain_ms = least_ms(rounds, lambda: [one for one in plain if asked.plain(one)])
    figures = f"{found:6} meant  {ms:7.2f} ms  plain {plain_ms:6.2f} ms  {ms / plain_ms:5.1f}"
    return f"{asked.text:50} {figures}"


def tell(table: EntityTable, rounds: int) -> str:
    """How long it takes to tell all nodes in whole, for comparison."""
    rows = at_once(meant(table, [parse_selector("node:*")], NOW))
    ms = least_ms(rounds, lambda: [view(row, NOW) for row in rows])
    return (
        f"{'... telling all nodes in whole, for comparison':50} {len(rows):6}        {ms:7.2f} ms"
    )


def write(title: str, names: list[str], rounds: int) -> str:
    """How long it takes to fold these names, and to expand them again."""
    folded = fold(names)
    folding = least_ms(rounds, lambda: fold(names))
    expanding = least_ms(rounds, lambda: expand(folded))
    line = f"{len(names):,} names, {title}: fold {folding:.1f} ms, expand {expanding:.1f} ms"
    if ShellSet is None:
        return line
    theirs = least_ms(3, lambda: str(ShellSet.fromlist(names)))
    back = least_ms(3, lambda: list(ShellSet(folded)))
    return f"{line}; ClusterShell {theirs:.1f} and {back:.1f} ms"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    table, plain = cluster()
    print(f"{len(NAMES):,} nodes, {len(table):,} entities; CPU, the least of {rounds} rounds")
    for asked in ASKED:
        print(ask(asked, table, plain, rounds))
    print(tell(table, rounds))
    reading = least_ms(rounds, lambda: [parse_selector(one.text) for one in ASKED])
    print(f"reading these {len(ASKED)} selectors: {reading:.3f} ms")
    print(write("in order", NAMES, rounds))
    print(write("scattered", SCATTERED, rounds))
    large = parse_nodeset(LARGE)
    looking = least_ms(rounds, lambda: [large.has(name) for name in NAMES])
    print(f"{len(NAMES):,} names looked up in {LARGE} ({large.count_max:,}): {looking:.1f} ms")


if __name__ == "__main__":
    main()
