"""The duty of a promoted parent to its predecessor: time for the steps under way."""

import asyncio
from pathlib import Path

from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.daemon.settings import PROMOTED
from haptera.model.parts import Step
from haptera.runtime import clock


def succeed_another(home: Path, engine: Engine) -> None:
    """If this parent was promoted, leave its predecessor's steps the time to take effect."""
    mark = home / PROMOTED
    if mark.exists():
        now = clock.now_ns()
        steps = [one for one in engine.catalog.parts() if isinstance(one, Step)]
        until = engine.safety.succeed(steps, now)
        loop = asyncio.get_running_loop()
        loop.call_later((until - now) / S, lambda: mark.unlink(missing_ok=True))
