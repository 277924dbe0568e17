"""The page on acting: its conditions are those of the code."""

import inspect
import re
from pathlib import Path

from haptera.core.safety.conditions import Conditions

ROOT = Path(__file__).resolve().parents[2]
LINK = r"\[(.+?)\]\(.+?\)"
PAGE = (ROOT / "docs/explain/acting.md").read_text(encoding="utf-8")


def test_the_code_has_each_condition_of_a_disruptive_step_under_its_number() -> None:
    section = PAGE.partition("## What a disruptive step waits for\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^(\d+\. )\*\*(.+?)\.?\*\*", section, re.MULTILINE)
    on_page = [number + re.sub(LINK, r"\1", text) for number, text in listed]
    methods = [one for _, one in inspect.getmembers(Conditions, inspect.isfunction)]
    said = [doc for one in methods if (doc := inspect.getdoc(one)) and doc[0].isdigit()]
    in_code = sorted(said, key=lambda doc: int(doc.partition(".")[0]))
    assert len(on_page) == 10
    assert "all ten conditions" in section
    assert [doc[: len(text)] for doc, text in zip(in_code, on_page, strict=True)] == on_page


def test_the_code_asks_them_in_the_order_of_their_numbers() -> None:
    source = inspect.getsource(Conditions.__init__) + inspect.getsource(Conditions.check)
    of_nodes, _, rest = source.partition("_of_services")
    of_services, _, last = rest.partition("def check")
    numbers = re.compile(r"# (\d+)$", re.MULTILINE)
    assert [*numbers.findall(of_nodes), *numbers.findall(last)] == [str(n) for n in range(1, 11)]
    assert numbers.findall(of_services) == ["1", "2", "3", "5"]
