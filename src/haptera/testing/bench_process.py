"""A module's process as a bench has it: its functions are called on a real target, in time."""

import asyncio
import shutil
import tempfile
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, assert_never

from haptera.core.state.limits import S
from haptera.model.effects import Call, Work
from haptera.model.events import Answered, Ended, Event, Exited, Failed, Progressed
from haptera.sdk import Boot, Module, Refused, Setup, Target
from haptera.sdk.failures import Failures
from haptera.sdk.threads import Threads

Made = TypeVar("Made")

# A function that has not returned within its limit, or after so long of real time, hangs.
HANGS_S: Final = 5.0
THREADS_MAX: Final = 256
BOOT: Final = Boot("bench-token", "bench-ca", "bench-parent")


class BenchProcess(Generic[Made]):
    """Calls the functions of a module, and tells what a real process of it would.

    They are handed `on`, or else what `connect` makes of the target. A plain function runs in a
    thread. One that hangs is not answered; one that raises `SystemExit` ends the process.
    """

    def __init__(
        self,
        module: Module[Made],
        *,
        on: Made | None,
        connect: Callable[[Target], Made] | None,
        settings: Mapping[str, Any] | None,
        now: Callable[[], int],
    ) -> None:
        self._module = module
        self._on = on
        self._connect = connect
        self._settings: Any = {}
        if settings is not None or on is None:
            self._settings = module.settings(settings or {})
        self._now = now
        self._session: Any = None
        self._failures = Failures(module.packages(), now)
        self._threads = Threads(THREADS_MAX)
        self.run_dir = Path(tempfile.mkdtemp(prefix="haptera-bench-"))
        weakref.finalize(self, shutil.rmtree, self.run_dir, ignore_errors=True)

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """The module's lifespan, where its own `connect` may need its session."""
        if self._on is not None or self._connect is not None:
            yield
            return
        async with self._module.alive(Setup(self._settings, self.run_dir)) as session:
            self._session = session
            yield

    async def call(self, call: Call) -> list[Event]:
        """What comes of a call: nothing where it hangs."""
        told: list[Event] = []
        target = self._target(call, told)
        limit_s = HANGS_S
        if call.deadline_at is not None:
            limit_s = min(HANGS_S, (call.deadline_at - self._now()) / S)
        timer = asyncio.timeout(limit_s)
        try:
            async with timer:
                told.append(await self._called(call, target))
        except Refused as refusal:
            told.append(Failed(call.id, str(refusal), refused=True))
        except SystemExit as end:
            told.append(Exited(call.module, f"ended: status {end.code}", call.process))
        except Exception as error:  # noqa: BLE001  the author's code may raise anything
            if not timer.expired():
                text = self._failures.describe(error, f"{call.part} of {call.entity}")
                told.append(Failed(call.id, text))
        return told

    def _target(self, call: Call, told: list[Event]) -> Target:
        return Target(
            call.entity,
            attributes=call.attributes,
            values=call.values,
            digest=call.digest,
            intent=call.intent,
            boot=BOOT if call.enrols else None,
            run_dir=self.run_dir,
            settings=self._settings,
            session=self._session,
            deadline_ns=call.deadline_at,
            now=self._now,
            tell=lambda text, done: told.append(Progressed(call.id, text, done)),
        )

    async def _called(self, call: Call, target: Target) -> Event:
        at = self._now()
        async with self._made(target) as made:
            match call.work:
                case Work.LOOK:
                    reading = await self._function(call, self._module.lookers[call.part], made)
                    age_ns = target.take_age_ns() or _age_ns(made)
                    return Answered(call.id, str(reading), at - age_ns, target.take_note())
                case Work.STEP:
                    await self._function(call, self._module.steppers[call.part], made)
                case Work.HOLD | Work.RELEASE:
                    await self._run(call, self._module.gates[call.part], made)
                case Work.WATCH | Work.SAMPLE:
                    raise AssertionError(call)
                case _:
                    assert_never(call.work)
        return Ended(call.id)

    @asynccontextmanager
    async def _made(self, target: Target) -> AsyncIterator[Any]:
        if self._on is not None:
            yield self._on
        elif self._connect is not None:
            yield self._connect(target)
        else:
            async with self._module.connected(target) as made:
                yield made

    async def _function(self, call: Call, function: Callable[[Any], Any], made: Any) -> Any:
        """The answer of a function on the entity, alone or as one of many."""
        if call.part not in self._module.together:
            return await self._run(call, function, made)
        told = await self._run(call, function, {call.entity: made})
        if told is not None and isinstance(error := told[call.entity], Exception):
            raise error
        return None if told is None else told[call.entity]

    async def _run(self, call: Call, function: Callable[[Any], Any], on: object) -> Any:
        if iscoroutinefunction(function):
            return await function(on)
        return await self._threads.run(call.entity, partial(function, on))


def _age_ns(made: object) -> int:
    """How old a look said that its reading is, by a target of the fake's own."""
    target = getattr(made, "target", made)
    return target.take_age_ns() if isinstance(target, Target) else 0
