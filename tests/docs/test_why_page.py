"""The page on why: its examples are what the commands print, its figures those of the code."""

from pathlib import Path

from haptera.core.views.query import TRIED_SHOWN_MAX
from haptera.core.views.unblock import NO_WAY
from haptera.daemon.parent.backend import AGENT_WITHIN_S
from haptera.runtime.network.peer_messages import LOG_BYTES_MAX

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/why.md").read_text(encoding="utf-8")


def test_what_is_needed_where_there_is_no_chain_is_what_the_code_says() -> None:
    assert all(f"| {needs} |" in PAGE for needs in NO_WAY.values())


def test_the_figures_are_those_of_the_code() -> None:
    assert f"the last {LOG_BYTES_MAX // 1024} kB" in PAGE
    assert f"the last {TRIED_SHOWN_MAX} steps" in PAGE
    assert AGENT_WITHIN_S == 2.0
