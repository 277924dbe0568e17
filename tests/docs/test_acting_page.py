"""The page on acting: its figures and sentences are those of the code."""

import inspect
import re
from pathlib import Path

from haptera.cli.output.words import SLOW_FACTOR, SLOW_MS
from haptera.core.act.contradiction import NEWER_NS, SOON_MAX, SOON_NS
from haptera.core.act.oscillation import ADVICE, STEADY_NS, UNDONE_MAX
from haptera.core.safety.conditions import Conditions
from haptera.core.safety.permits import PERMIT_AGAIN_NS
from haptera.core.state.limits import LASTS_NS, MS, S
from haptera.core.state.typical_durations import LAST_MAX, NODES_MAX, NOTABLE_NS
from haptera.core.sync.peers import LOST_AFTER, SUSPECT_AFTER
from haptera.core.sync.presence import BOOT_PATIENCE, BOOT_WITHIN_MS, BOOTING, LOST_PATIENCE
from haptera.model.policy import LOOKING
from haptera.model.walltime import span

ROOT = Path(__file__).resolve().parents[2]
LINK = r"\[(.+?)\]\(.+?\)"
PAGE = (ROOT / "docs/explain/acting.md").read_text(encoding="utf-8")


def test_the_figures_of_what_is_contested_are_those_of_the_code() -> None:
    assert "at least one second newer than the first reading of `off`" in PAGE
    assert "three times within three seconds" in PAGE
    assert "at least once a minute" in PAGE
    assert (NEWER_NS, SOON_MAX, SOON_NS, LOOKING.cool_down_ms) == (S, 3, S, 60_000)
    assert "for 1.2 hello intervals" in PAGE
    assert SUSPECT_AFTER == 12


def test_the_figures_of_a_boot_are_those_of_the_code() -> None:
    assert f"`nothing heard from the agent for {span(BOOT_WITHIN_MS)}`" in PAGE
    assert "After ten times as long" in PAGE
    given_up = f"given up after {BOOTING.attempts} attempts, for {span(BOOTING.cool_down_ms)}"
    assert f"`{given_up}`" in PAGE
    assert BOOT_PATIENCE == 10
    lost = span(LOST_PATIENCE * BOOT_WITHIN_MS)
    assert f"fails after {lost}, counted from the time at which the agent is lost (4 H)" in PAGE
    assert LOST_AFTER == 40


def test_the_figures_of_modules_that_undo_each_other_are_those_of_the_code() -> None:
    assert f"(3 times in 30 s); {ADVICE}\n" in PAGE
    assert "three times within ten minutes" in PAGE
    assert "for half a minute" in PAGE
    assert (UNDONE_MAX, LASTS_NS, STEADY_NS) == (3, 600 * S, 30 * S)


def test_the_figures_of_what_is_usual_are_those_of_the_code() -> None:
    assert "the last sixteen runs" in PAGE
    assert "more than twice its usual duration plus one second" in PAGE
    assert (LAST_MAX, SLOW_FACTOR, SLOW_MS) == (16, 2, 1_000)
    assert "by more than half and by more than 50 ms" in PAGE
    assert "of the last sixteen nodes that reported" in PAGE
    assert (NODES_MAX, NOTABLE_NS) == (16, 50 * MS)


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
    assert "or after 5 s" in section
    assert PERMIT_AGAIN_NS == 5 * S


def test_the_code_asks_them_in_the_order_of_their_numbers() -> None:
    source = inspect.getsource(Conditions.__init__) + inspect.getsource(Conditions.check)
    of_nodes, _, rest = source.partition("_of_services")
    of_services, _, last = rest.partition("def check")
    numbers = re.compile(r"# (\d+)$", re.MULTILINE)
    assert [*numbers.findall(of_nodes), *numbers.findall(last)] == [str(n) for n in range(1, 11)]
    assert numbers.findall(of_services) == ["1", "2", "3", "5"]
