"""How thoroughly properties are tried and what they met; that tests are quick and can be ended."""

import asyncio
import gc
import inspect
import os
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests import mounts

mounts.keep_private()

settings.register_profile("dev", max_examples=30, deadline=None)
settings.register_profile("ci", max_examples=30, deadline=None, derandomize=True)
# The night's: twice as many, and others each day, by `--hypothesis-seed`.
settings.register_profile("wide", max_examples=60, deadline=None, database=None)
# For planted bugs: to find one is enough, there is no need for its smallest example.
settings.register_profile(
    "hunt", max_examples=300, deadline=None, derandomize=True, phases=[Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# Tests make many small values that live for a moment; to look for circles among them each few
# hundred took a fifth of the time.
gc.set_threshold(10_000)

# A shell has what it starts in the background ignore interrupts, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARES: pytest.StashKey[dict[str, Counter[str]]] = pytest.StashKey()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What may take longest goes first, so that no worker is left alone with it at the end."""
    items.sort(key=_limit_s, reverse=True)


def _limit_s(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return 0 if marker is None else float(marker.args[0])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine has an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def shares(pytestconfig: pytest.Config) -> Callable[[str], Counter[str]]:
    """What is counted under a title; the last lines of the tests' output tell the shares."""
    counted = pytestconfig.stash.setdefault(SHARES, {})
    return lambda title: counted.setdefault(title, Counter())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process that runs a part of the tests hands over what was counted in it."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        counted = session.config.stash.get(SHARES, {})
        output["shares"] = {title: dict(counts) for title, counts in counted.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    counted = node.config.stash.setdefault(SHARES, {})
    # One that was killed hands over nothing.
    for title, counts in getattr(node, "workeroutput", {}).get("shares", {}).items():
        counted.setdefault(title, Counter()).update(counts)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for title, counts in config.stash.get(SHARES, {}).items():
        total = counts.total()
        told = ", ".join(f"{name} {number / total:.1%}" for name, number in counts.most_common())
        terminalreporter.write_line(f"{title}: {told} (of {total:,})")
