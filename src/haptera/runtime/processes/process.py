"""The processes of modules: started by the zygote, spoken to in frames, heard of as events."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.model.deprecated import UNDECLARED_SETTINGS
from haptera.model.effects import Call, Cancel, Start, Stop, StopStep, Work
from haptera.model.events import (
    Answered,
    Ended,
    Event,
    Exited,
    Failed,
    LoopBlocked,
    Progressed,
    Ready,
    WatchReported,
)
from haptera.runtime.processes.child_handle import ChildHandle
from haptera.runtime.processes.confinement.confinement import Confine, Confinement, unconfined
from haptera.runtime.processes.controllers import Controllers, ServedController
from haptera.runtime.processes.forking import Child, LoopZygote
from haptera.runtime.processes.ipc import Frame, FrameLink
from haptera.runtime.processes.module_frames import (
    Sampled,
    begin_frame,
    call_frame,
    event_of,
    sampled_of,
)
from haptera.runtime.processes.output import Output
from haptera.runtime.processes.places import ModulePlace
from haptera.sdk.target import Boot

# How long a module may take to end once its link is closed: it may be writing its last words.
END_WITHIN_S: Final = 2

# Beats without a sign of life until that is reported; one that is missed may be a busy machine's.
MISSED_TOLD: Final = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """What a module's process may do; it is ended when it does more, and then started anew.

    It is asked for a sign of life at each beat, and may miss some. Within a beat it may send so
    many frames besides the answers that are due, and more for each watch, so many bytes, and
    print so much. No more bytes than `unsent_bytes_max` wait to be sent to it.
    """

    beat_s: float = 5.0
    beats_missed_max: int = 6
    frames_unasked_max: int = 10_000
    frames_a_watch_max: int = 10
    unsent_bytes_max: int = 32 << 20
    bytes_max: int = 64 << 20
    output_bytes_max: int = 1 << 20
    memory_bytes_max: int = 4 << 30


# The function that makes a module of a site's declaration.
DECLARED: Final = "haptera.modules.declared.module:declared"
LIMITS: Final = Limits()

_log = logging.getLogger(__name__)


class ModuleProcesses:
    """Each process of each module, by its number; what they say goes to `deliver`, in order.

    `places` says where each module is: one of ours as "package.module:attribute". A process
    writes its output to `log_dir`/NAME.log and keeps what must outlive it in `run_dir`. Those of
    `controllers` are started like modules, and served by these. What `confine` says of one holds
    for its processes, which have a folder of their own then, unless they share some of `run_dir`.
    What they measure goes to `sampled`. Needs a running loop.
    """

    def __init__(  # noqa: PLR0913 (what a process is made of)
        self,
        zygote: LoopZygote,
        deliver: Callable[[list[Event]], None],
        *,
        places: Mapping[str, str | ModulePlace],
        run_dir: Path,
        log_dir: Path,
        controllers: Controllers | None = None,
        limits: Limits = LIMITS,
        confine: Confine = unconfined,
        sampled: Callable[[Sampled], None] = lambda _: None,
    ) -> None:
        self._confine = confine
        self._sampled = sampled
        self._controllers = controllers
        self._zygote = zygote
        self._deliver = deliver
        self._places = places
        self._run_dir = run_dir
        self._log_dir = log_dir
        self._limits = limits
        self._running: dict[tuple[str, int], _Process] = {}

    def start(self, start: Start) -> None:
        """Start a process of a module; `Ready` or `Exited` is delivered later."""
        self._start(start, {})

    def describe(self, start: Start) -> None:
        """As `start`, but it is only asked what it declares, and serves nothing."""
        self._start(start, {"describe": True})

    def _start(self, start: Start, beside: Frame) -> None:
        module = start.module
        assert (module, start.process) not in self._running, start
        try:
            output = Output(log_of(self._log_dir, module))
        except OSError as error:
            gone: list[Event] = [Exited(module, f"was not started: {error}", start.process)]
            asyncio.get_running_loop().call_soon(self._deliver, gone)
            return
        ours, theirs = socket.socketpair()
        process = _Process(start, ours, output, self._deliver, self._limits, self._sampled)
        if self._controllers is not None and self._controllers.place(module) is not None:
            process.served = self._controllers.serve(module, process.link)
        self._running[module, start.process] = process
        folder = self._folder(self._confine(module))
        process.begin(None if process.served else begin_frame(start, folder) | beside)
        with theirs:
            self._fork(process, theirs.fileno(), output.writing)
        output.close_writing()

    def stop(self, stop: Stop) -> None:
        """Hang up on a process, which ends it; `Exited` is delivered once it is gone."""
        if (process := self._running.get((stop.module, stop.process))) is not None:
            process.hang_up()

    def call(self, call: Call, boot: Boot | None = None, settings: Any = None) -> None:
        """Send a call; where the module does not run it fails at once, without effect.

        `settings` are those for its entity, where these are its own.
        """
        process = self._running.get((call.module, call.process))
        if process is None:
            text = f"module {call.module} does not run"
            self._deliver([Failed(call.id, text, refused=True)])
        else:
            process.call(call, boot, settings)

    def cancel(self, cancel: Cancel | StopStep) -> None:
        """Nobody waits for a call any more; or a step is asked to stop."""
        process = self._running.get((cancel.module, cancel.process))
        if process is not None and isinstance(cancel, StopStep):
            process.link.send({"op": "stop", "id": cancel.call})
        elif process is not None:
            process.cancel(cancel.call)

    def close(self) -> None:
        """Hang up on all modules, which ends them; nothing is delivered any more."""
        for process in self._running.values():
            process.link.close()
            process.let_go()
        self._running.clear()

    def _folder(self, confinement: Confinement | None) -> Path:
        if confinement is None or confinement.shared:
            return self._run_dir
        return Path(confinement.folder)

    def _fork(self, process: "_Process", link: int, output: int) -> None:
        self._zygote.fork(
            *self._target(process.start),
            (link,),
            output=output,
            ended=lambda status: self._end(process, status),
        ).add_done_callback(lambda forked: self._forked(process, forked))

    def _target(self, start: Start) -> tuple[str, dict[str, Any]]:
        """What this process runs, and with which arguments."""
        target, arguments = self._unconfined(start)
        confinement = msgspec.to_builtins(self._confine(start.module))
        return target, {**arguments, "confinement": confinement}

    def _unconfined(self, start: Start) -> tuple[str, dict[str, Any]]:
        controllers = self._controllers
        if controllers is not None and (own := controllers.place(start.module)) is not None:
            arguments = {
                **msgspec.structs.asdict(own),
                "desired": start.settings,
                "memory_bytes_max": self._limits.memory_bytes_max,
            }
            return "haptera.runtime.processes.fork_targets:controller_process", arguments
        place = self._places[start.module]
        return module_target(start.module, place, self._limits.memory_bytes_max)

    def _forked(self, process: "_Process", forked: asyncio.Future[Child]) -> None:
        if (error := forked.exception()) is not None:
            self._gone(process, f"was not started: {error}")
        elif self._running.get(process.key) is process:
            process.child.take(forked.result().pidfd)
        else:
            os.close(forked.result().pidfd)

    def _end(self, process: "_Process", status: int) -> None:
        # What it said last is still in the socket.
        process.link.drain()
        self._gone(process, process.how_it_ended(status))

    def _gone(self, process: "_Process", text: str) -> None:
        process.link.close()
        process.let_go()
        if self._running.get(process.key) is process:
            del self._running[process.key]
            self._deliver([Exited(process.start.module, text, process.start.process)])


class _Process:
    """One module's process, from the moment it was asked for."""

    def __init__(
        self,
        start: Start,
        link: socket.socket,
        output: Output,
        deliver: Callable[[list[Event]], None],
        limits: Limits,
        sampled: Callable[[Sampled], None],
    ) -> None:
        self.start = start
        self._sampled = sampled
        self._sampling: set[int] = set()
        self.link = FrameLink(link, self._take, self._break, limits.unsent_bytes_max)
        self.served: ServedController | None = None
        self._output = output
        self._deliver = deliver
        self._limits = limits
        self.child = ChildHandle()
        self._breach: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: set[int] = set()
        self._watches: set[int] = set()
        self._ready = False
        self._missed = 0

    @property
    def key(self) -> tuple[str, int]:
        return self.start.module, self.start.process

    def begin(self, frame: Frame | None) -> None:
        """Tell it this before anything else, and from then on expect signs of life."""
        if frame is not None:
            self.link.send(frame)
        self._beat()

    def let_go(self) -> None:
        if self.served is not None:
            self.served.close()
        self.child.close()
        if self._timer is not None:
            self._timer.cancel()
        self._output.close()

    def how_it_ended(self, status: int) -> str:
        """In its last words, if it had any; or for what it was ended."""
        said = self._output.how_it_ended(status)
        return said if self._breach is None else f"was ended: {self._breach}"

    def call(self, call: Call, boot: Boot | None, settings: Any) -> None:
        if call.work is Work.SAMPLE:
            self._sampling.add(call.id)
        else:
            self._due.add(call.id)
        if call.work is Work.WATCH:
            self._watches.add(call.id)
        frame = call_frame(call, boot)
        if settings is not None:
            frame["settings"] = settings
        self.link.send(frame)

    def cancel(self, call: int) -> None:
        for calls in (self._due, self._watches, self._sampling):
            calls.discard(call)
        self.link.send({"op": "cancel", "id": call})

    def hang_up(self) -> None:
        """End it as the end of the daemon would."""
        self.link.close()
        self._break(None)

    def _take(self, frames: list[Frame]) -> None:
        events: list[Event] = []
        try:
            events.extend(event for frame in frames if (event := self._event(frame)) is not None)
            unasked_max = self._limits.frames_unasked_max
            unasked_max += self._limits.frames_a_watch_max * (
                len(self._watches) + len(self._sampling)
            )
            over = self._unasked > unasked_max
            if over or self.link.arrived_bytes - self._seen_bytes > self._limits.bytes_max:
                raise ValueError("it sent more than was requested")
        finally:
            # What it said before it went wrong was said.
            self._deliver(events)

    def _event(self, frame: Frame) -> Event | None:
        """What a frame tells the engine; a sign of life is for us alone."""
        if frame.get("op") == "pong":
            self._missed = 0
            return None
        if self.served is not None and frame.get("op") != "ready":
            self._unasked += 1
            self.served.take(frame)
            return None
        if (told := sampled_of(frame)) is not None and told.call in self._sampling:
            self._unasked += 1
            self._sampled(told)
            return None
        event = event_of(self.start, frame)
        match event:
            case Answered(call=call) | Ended(call=call) | Failed(call=call) if call in self._due:
                self._due.discard(call)
                self._watches.discard(call)
            case Ready():
                self._ready, self._missed = True, 0
                self._say_what_will_go(event)
            case WatchReported(call=call) | Progressed(call=call) if call in self._due:
                self._unasked += 1
            case LoopBlocked():
                self._unasked += 1
            case _:
                # A module speaks for the calls that it was given, not for those of others.
                self._unasked += 1
                return None
        return event

    def _say_what_will_go(self, ready: Ready) -> None:
        """Once a process, in the daemon's log."""
        undeclared = ready.manifest is not None and ready.manifest.settings is None
        if undeclared and self.start.settings not in ("", "{}"):
            _log.warning("module %s %s", self.start.module, UNDECLARED_SETTINGS)

    def _beat(self) -> None:
        """Ask for a sign of life, unless it owes us too many; and begin to count anew."""
        if self._missed == self._limits.beats_missed_max:
            self.link.close()
            self._break(self._silence())
            return
        if self._ready and self._missed == MISSED_TOLD:
            self._deliver([LoopBlocked(self.start.module, self._silence(), self.start.process)])
        self._missed += 1
        self._unasked, self._seen_bytes = 0, self.link.arrived_bytes
        self._output.allow(self._limits.output_bytes_max)
        self.link.send({"op": "ping"})
        self._timer = asyncio.get_running_loop().call_later(self._limits.beat_s, self._beat)

    def _silence(self) -> str:
        """That it says nothing, since when, and what it printed last: what it is at, perhaps."""
        what = "it hangs: no sign of life" if self._ready else "it did not become ready"
        printed = self._output.last_line()
        at = f"; it printed last: {printed}" if printed else ""
        return f"{what} within {self._limits.beat_s * self._missed:g} s{at}"

    def _break(self, text: str | None) -> None:
        """A module that cannot be spoken to any more is of no use: its end lets it start anew."""
        self._breach = text
        if self._timer is not None:
            self._timer.cancel()
        if text is None:
            self._timer = asyncio.get_running_loop().call_later(END_WITHIN_S, self.child.kill)
        else:
            self.child.kill()


def module_target(
    name: str, place: str | ModulePlace, memory_bytes_max: int
) -> tuple[str, dict[str, Any]]:
    """What a zygote forks for a module at this place, and with which arguments."""
    arguments: dict[str, Any] = {"name": name, "memory_bytes_max": memory_bytes_max}
    if isinstance(place, ModulePlace) and place.command:
        arguments |= {"command": place.command, "folder": place.folder}
        return "haptera.runtime.processes.fork_targets:command_process", arguments
    if isinstance(place, ModulePlace) and place.declares is not None:
        arguments |= {"place": DECLARED, "folder": None, "declares": place.declares}
    elif isinstance(place, ModulePlace):
        arguments |= {"place": place.place, "folder": place.folder}
    else:
        arguments |= {"place": place, "folder": None}
    return "haptera.runtime.processes.fork_targets:module_process", arguments


def log_of(log_dir: Path, module: str) -> Path:
    """Where the output of a module's processes is kept."""
    return log_dir / f"{module}.log"
