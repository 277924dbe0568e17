"""The page on selectors: its examples run as doctests; its limits are those of the code."""

import re
from pathlib import Path

from haptera.model import nodeset

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/selectors.md").read_text("utf-8")


def test_the_limits_are_those_of_the_code() -> None:
    told = dict(re.findall(r"^\| `([A-Z_]+)`: .* \| ([0-9,]+) \|$", PAGE, re.MULTILINE))

    assert told == {
        name: f"{getattr(nodeset, name):,}"
        for name in ("NODES_MAX", "NODESET_BYTES_MAX", "STEPS_MAX", "WILD_MAX", "GROUPS_MAX")
    }
