"""Drawings that tests of how they are written share."""

import json
from typing import Any

from haptera.model.answers.graph import DrawingView
from haptera.planner.explain.problem_line import draw_line
from tests.planner.test_original_tables import KRAKEN, LAYERCAKE
from tests.planner.test_worked_examples import PROBLEM

OFF: dict[str, Any] = {
    "observed": {"power": "off"},
    "remembered": {"agent": "down"},
    "desired": {"agent": "up"},
}
REBOOT = {"name": "reboot", "changes": {"agent": ["*", "up?"]}, "requires": {"power": "on"}}
# Names that mean something in XML, in DOT, or to a terminal.
HOSTILE = ["<b>&\"'", "\\N\\l\\", "a\nb\x1b[31m\x00", "]]>-->", "名前", "\ud800", "x" * 500]


def drawn(problem: dict[str, Any], **given: Any) -> DrawingView:
    return draw_line(json.dumps(problem | given).encode())


def hostile() -> DrawingView:
    """Every name of it is one that must not be taken for something else."""
    variables = {name: ["unknown", name, "other"] for name in HOSTILE}
    return drawn(
        {
            "variables": variables,
            "attributes": {"<a>": '"'},
            "looks": [
                {"name": f"look {name}", "at": name, "outcomes": [name, "other"]}
                for name in HOSTILE
            ],
            "steps": [
                {"name": f"step {name}", "changes": {name: [name, "other"]}} for name in HOSTILE
            ],
            "desired": dict.fromkeys(HOSTILE, "other"),
        }
    )


EXAMPLES = {
    "class": drawn(PROBLEM),
    "chain": drawn(PROBLEM, **OFF),
    "no chain": drawn(PROBLEM, steps=[], **OFF),
    "back to itself": drawn(PROBLEM, steps=[*PROBLEM["steps"], REBOOT]),
    "kraken": drawn(KRAKEN),
    "layercake": drawn(LAYERCAKE, observed={"phys": "off"}, desired={"set": "active"}),
    "hostile": hostile(),
    "empty": drawn({"variables": {"a": ["unknown", "1"]}, "observed": {"a": "1"}}),
}
