"""A module's process: takes calls as frames, runs the author's functions, answers."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, assert_never

import msgspec

from haptera.model.declared.schema import digest_fault
from haptera.model.errors import Code, DeclarationError, HapteraError
from haptera.sdk.drains import Drains
from haptera.sdk.failures import TEXT_BYTES_MAX, Failures, concealed, cut
from haptera.sdk.gathering import Gathering
from haptera.sdk.link import BeginFrame, CallFrame, Frame, frames_of, parse_begin, parse_call
from haptera.sdk.loop_watch import LoopWatch
from haptera.sdk.module import Module
from haptera.sdk.sampling.rounds import measured_values, phase, rounds
from haptera.sdk.settings import secrets_in
from haptera.sdk.target import Boot, Draining, Refused, Setup, Target
from haptera.sdk.threads import ProgressTeller, Threads
from haptera.wire.ipc import encode_frame

# Calls that were cancelled and do not end: the author's code holds them. No more are taken then.
# So many threads may hang beside those of the calls under way.
HANGING_MAX = 256
NOTE_BYTES_MAX = 100


async def serve(
    module: Module[Any],
    link: socket.socket,
    *,
    now: Callable[[], int],
    wall_s: Callable[[], float],
) -> None:
    """Wait for the start, then serve calls until the other side closes the link.

    Whatever is under way ends with it.

    Raises:
        HapteraError: what came over the link is no frame, or asks for nothing that we know.
    """
    reader, writer = await asyncio.open_connection(sock=link)
    frames = frames_of(reader)
    breach: HapteraError | None = None
    try:
        first = await anext(frames, None)
        if first is None:
            return
        begun = parse_begin(first)
        drains = Drains(begun.run_dir, wall_s)
        host = _Host(module, writer, now, begun, drains)
        async with host.alive(), asyncio.TaskGroup() as tasks:
            host.ready()
            try:
                async for frame in frames:
                    host.take(frame, tasks)
            except HapteraError as error:
                # Kept, and raised below: a task group would wrap it.
                breach = error
            host.leave()
    finally:
        writer.close()
    if breach is not None:
        raise breach


class _Host:
    """The calls of one module's process, by their ids."""

    def __init__(
        self,
        module: Module[Any],
        writer: asyncio.StreamWriter,
        now: Callable[[], int],
        begun: BeginFrame,
        drains: Drains,
    ) -> None:
        self._module = module
        self._writer = writer
        self._unsent = bytearray()
        self._now = now
        self._begun = begun
        manifest = module.manifest()
        self._declared = manifest.settings or ()
        self._threads = Threads(manifest.at_once + HANGING_MAX)
        self._measuring = asyncio.Semaphore(manifest.at_once)
        self._loop_watch = LoopWatch(module.functions, self._blocked)
        self._settings: Any = None
        self._session: Any = None
        self._unfit: HapteraError | None = None
        try:
            self._settings = module.settings(begun.settings)
        except HapteraError as error:
            # Who gives no settings at all may only want to know what the module declares.
            if begun.settings:
                raise
            self._unfit = error
        self._progress = ProgressTeller(self._progressed)
        self._targets: dict[int, Target] = {}
        self._gatherings: dict[str, Gathering] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}
        # Acts that have begun, with their deadlines.
        self._uncut: dict[int, int | None] = {}
        self._cancelled: set[int] = set()
        self._failures = Failures(module.packages(), now)
        self._drains = drains

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """The module's lifespan, unless it is only asked what it declares, or cannot serve."""
        if self._begun.describe or self._unfit is not None:
            yield
            return
        async with self._module.alive(Setup(self._settings, self._begun.run_dir)) as session:
            self._session = session
            yield

    def ready(self) -> None:
        name, version = self._module.name, self._module.version
        manifest = msgspec.to_builtins(self._module.manifest())
        self._send({"op": "ready", "module": name, "version": version, "manifest": manifest})

    def leave(self) -> None:
        """Nobody listens any more, or to nothing but what was said: end everything."""
        self._flush()
        for task in self._calls.values():
            task.cancel()

    def take(self, frame: Frame, tasks: asyncio.TaskGroup) -> None:
        match frame:
            case {"op": "call"}:
                self._begin(parse_call(frame), tasks)
            case {"op": "cancel", "id": int(call)}:
                self._cancel(call)
            case {"op": "stop", "id": int(call)}:
                if (target := self._targets.get(call)) is not None:
                    target.stop()
            case {"op": "ping"}:
                self._send({"op": "pong"})
            case _:
                raise HapteraError(
                    f"the daemon asks for {frame.get('op')!r}, which is unknown",
                    code=Code.VERSION_MISMATCH,
                )

    def _begin(self, call: CallFrame, tasks: asyncio.TaskGroup) -> None:
        if len(self._cancelled) >= HANGING_MAX:
            self._fail(call.id, f"{HANGING_MAX} calls hang past their limit; no more are accepted")
        elif call.part not in self._functions(call):
            self._fail(call.id, f"module {self._module.name} has no {call.work} {call.part!r}")
        elif self._unfit is not None:
            self._fail(call.id, str(self._unfit))
        else:
            self._calls[call.id] = task = tasks.create_task(self._run(call))
            task.add_done_callback(lambda _: self._forget(call.id))

    def _functions(self, call: CallFrame) -> Mapping[str, object]:
        match call.work:
            case "look":
                return self._module.lookers
            case "step":
                return self._module.steppers
            case "watch":
                return self._module.watchers
            case "hold" | "release":
                return self._module.gates if call.part == call.work else {}
            case "sample":
                return self._module.samplers
            case _:
                assert_never(call.work)

    def _cancel(self, call: int) -> None:
        """End it; an act that has begun only when its time is over.

        What half a step does, nobody can tell; but neither what one does whose time is over.
        """
        if (task := self._calls.get(call)) is None or call in self._cancelled:
            return
        self._cancelled.add(call)
        deadline = self._uncut.get(call)
        if deadline is None:
            task.cancel()
        else:
            left_s = max(0, deadline - self._now()) / 1e9
            asyncio.get_running_loop().call_later(left_s, task.cancel)

    def _forget(self, call: int) -> None:
        del self._calls[call]
        self._uncut.pop(call, None)
        self._targets.pop(call, None)
        self._cancelled.discard(call)

    async def _run(self, call: CallFrame) -> None:
        """One call, whatever the author's code does."""
        if call.work == "sample":
            sampler = self._module.samplers[call.part]
            phase_s = 0.0 if call.part in self._module.together else phase(sampler, call.entity)
            fail = partial(self._fail, call.id)
            await rounds(sampler, phase_s, partial(self._carry_out, call), self._measuring, fail)
        elif call.work == "watch":
            await self._carry_out(call)
        else:
            with self._loop_watch.during():
                await self._carry_out(call)

    async def _carry_out(self, call: CallFrame) -> None:
        try:
            target = self._targets[call.id] = self._target(call)
            # What is late connects to nothing either.
            target.refuse_late()
            async with self._module.connected(target) as made:
                await self._work(call, target, made)
        except Refused as refusal:
            self._fail(call.id, self._told(call, refusal))
        except Exception as error:  # noqa: BLE001 - the author's code may raise anything
            text = self._told(call, error)
            failed = {"op": "failed", "id": call.id, "text": text, "refused": False}
            if isinstance(error, Draining):
                drained_ms = self._drains.lasts_ms(call.entity.name)
                failed = {**failed, "drains": True, "drained_ms": drained_ms}
            self._answer(failed)

    def _told(self, call: CallFrame, error: Exception) -> str:
        return self._failures.describe(error, f"{call.part} of {call.entity}", self._secrets(call))

    def _secrets(self, call: CallFrame) -> tuple[str, ...]:
        """The secrets that its functions have."""
        given = self._begun.settings if call.settings is None else call.settings
        return secrets_in(self._declared, given)

    async def _work(self, call: CallFrame, target: Target, made: object) -> None:
        at = self._now()
        target.refuse_late()
        match call.work:
            case "look":
                reading = await self._called(call, self._module.lookers[call.part], made)
                self._tell("answered", call, target, reading, at)
            case "step":
                await self._act(call, self._module.steppers[call.part], made)
            case "hold":
                if self._drains.rests(call.entity.name):
                    raise Draining("it was drained for too long")
                await self._act(call, self._module.gates[call.part], made)
                self._drains.held(call.entity.name)
            case "release":
                await self._act(call, self._module.gates[call.part], made)
                self._drains.released(call.entity.name)
            case "watch":
                async for reading in self._module.watchers[call.part](made):
                    self._tell("sighted", call, target, reading, self._now())
                    await self._writer.drain()
            case "sample":
                measured = await self._called(call, self._module.measuring[call.part], made)
                values = measured_values(self._module.samplers[call.part], measured)
                self._answer({"op": "sampled", "id": call.id, "at_ns": at, "values": values})
            case _:
                assert_never(call.work)

    def _tell(self, op: str, call: CallFrame, target: Target, reading: str, at: int) -> None:
        """What was read, and what was noted beside it, if anything."""
        value, note = self._reading(call, reading), target.take_note()
        at = max(0, at - target.take_age_ns())
        noted = {}
        if note is not None:
            noted = {"note": cut(concealed(note, self._secrets(call)), NOTE_BYTES_MAX)}
        self._answer({"op": op, "id": call.id, "value": value, "at_ns": at, **noted})

    def _target(self, call: CallFrame) -> Target:
        boot = None
        if (given := call.boot) is not None:
            boot = Boot(given.token, given.ca, given.parent, given.good_for_s)
        return Target(
            call.entity,
            attributes=call.attributes,
            values=call.values,
            digest=call.digest,
            intent=call.intent,
            boot=boot,
            run_dir=self._begun.run_dir,
            settings=self._own(call),
            session=self._session,
            deadline_ns=call.deadline_ns,
            now=self._now,
            tell=partial(self._say, call),
        )

    def _own(self, call: CallFrame) -> Any:
        """The settings of the module, or those for this entity where it has secrets of its own."""
        return self._settings if call.settings is None else self._module.settings(call.settings)

    async def _called(self, call: CallFrame, function: Callable[[Any], Any], made: object) -> Any:
        """What the function returns of this entity, alone or together with others."""
        apart = call.part if call.work == "sample" else None
        if call.part not in self._module.together:
            return await self._run_function((apart, call.entity), function, made)
        if call.part not in self._gatherings:
            ask = partial(self._run_function, apart or object(), function)
            self._gatherings[call.part] = Gathering(ask)
        gathering = self._gatherings[call.part]
        return await gathering.answer(call.entity, made, self._targets[call.id].refuse_late)

    async def _run_function(
        self, key: Hashable, function: Callable[[Any], Any], made: object
    ) -> Any:
        """What it returns: a plain one's, in a thread, where it may block.

        No second one is begun in a thread under a key, an entity's, while one hangs.
        """
        if iscoroutinefunction(function):
            return await function(made)
        return await self._threads.run(key, partial(function, made))

    async def _act(self, call: CallFrame, function: Callable[[Any], Any], made: object) -> None:
        self._uncut[call.id] = call.deadline_ns
        await self._called(call, function, made)
        self._answer({"op": "ended", "id": call.id})

    def _reading(self, call: CallFrame, reading: str) -> str:
        """What a look found, as text, where it is something that the look may find."""
        value, outcomes = str(reading), self._module.outcomes(call.part)
        if outcomes is None:
            if (fault := digest_fault(value)) is not None:
                raise DeclarationError(f"{call.part} found {fault}")
        elif value not in outcomes:
            raise HapteraError(f"{call.part} found {value!r}, which is not among its outcomes")
        return value

    def _fail(self, call: int, text: str) -> None:
        """It was not begun, or the device says so itself: it had no effect and will have none."""
        self._answer({"op": "failed", "id": call, "text": text, "refused": True})

    def _say(self, call: CallFrame, text: str, done: float | None) -> None:
        self._progress.say(call.id, concealed(text, self._secrets(call)), done)

    def _progressed(self, call: int, text: str, done: float | None) -> None:
        if call in self._uncut:
            told = {"op": "progress", "id": call, "text": cut(text, NOTE_BYTES_MAX)}
            self._answer(told if done is None else {**told, "done": done})

    def _blocked(self, text: str, blocked_ms: int) -> None:
        self._send({"op": "blocked", "text": cut(text, TEXT_BYTES_MAX), "ms": blocked_ms})

    def _answer(self, frame: Frame) -> None:
        self._loop_watch.tell_found()
        if frame["id"] not in self._cancelled:
            self._send(frame)

    def _send(self, frame: Frame) -> None:
        """Send this with all that is sent before the loop goes on: the daemon is woken once."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent += encode_frame(frame)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, bytearray()
        if unsent and not self._writer.is_closing():
            self._writer.write(unsent)
