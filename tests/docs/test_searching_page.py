"""The page on searching: its figures and sentences are those of the code."""

from pathlib import Path

from haptera.core.decide.plan_queue import (
    ANSWERS_MAX,
    DEATHS_MAX,
    QUESTIONS_MAX,
    RESTARTING,
    SEARCH_AGAIN_NS,
    SEARCH_QUEUE_AGAIN_NS,
    SEARCH_WITHIN_NS,
)
from haptera.core.preview.preview import PREVIEW_WITHIN_NS, PREVIEWS_MAX
from haptera.core.state.limits import MS, S
from haptera.daemon.parent.backend import PREVIEW_WITHIN_S
from haptera.planner.plan_query import EXPANSIONS_APART_MAX, TRIES_APART_MAX
from haptera.planner.reasons.reason import gave_up
from haptera.runtime.search.search_process import NICENESS
from haptera.runtime.search.searcher import MEMORY_BYTES_MAX

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/explain/searching.md").read_text(encoding="utf-8")


def test_the_limits_of_a_search_are_those_of_the_code() -> None:
    assert f"| {EXPANSIONS_APART_MAX:,}; fewer" in PAGE
    assert f"more than {TRIES_APART_MAX // EXPANSIONS_APART_MAX} moves" in PAGE
    assert f"| `{gave_up(EXPANSIONS_APART_MAX).text}` |" in PAGE
    assert f"| {MEMORY_BYTES_MAX >> 20} MiB, Python and all" in PAGE
    assert f"| {SEARCH_WITHIN_NS // S} s |" in PAGE
    assert f"(nice {NICENESS})" in PAGE


def test_the_limits_of_a_preview_are_those_of_the_code() -> None:
    assert f"for at most {PREVIEW_WITHIN_NS // S} s" in PAGE
    assert f"if {PREVIEWS_MAX} users are waiting" in PAGE
    assert PREVIEW_WITHIN_NS < PREVIEW_WITHIN_S * S


def test_the_limits_of_the_queue_are_those_of_the_code() -> None:
    assert f"| questions that wait | {QUESTIONS_MAX} |" in PAGE
    assert f"asked again after {SEARCH_QUEUE_AGAIN_NS // S} s" in PAGE
    assert f"| answers kept | {ANSWERS_MAX:,} |" in PAGE
    assert "after one second; this delay doubles" in PAGE
    assert "up to one minute" in PAGE
    assert (RESTARTING.backoff_ms * MS, RESTARTING.backoff_ms_max * MS) == (S, 60 * S)
    assert "at which two workers died" in PAGE
    assert "after ten minutes" in PAGE
    assert (DEATHS_MAX, SEARCH_AGAIN_NS) == (2, 600 * S)
