"""The processes of modules: started by the zygote, spoken to in frames, heard of as events."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from haptera.model.effects import Call, Cancel, Start, Stop
from haptera.model.errors import HapteraError
from haptera.model.events import Answered, Ended, Event, Exited, Failed, Ready, Sighted
from haptera.runtime import clock
from haptera.runtime.controllers import ControllerPlace, Controllers, Served
from haptera.runtime.forking import Child, LoopZygote
from haptera.runtime.ipc import Frame, FrameLink
from haptera.runtime.zygote import resolve
from haptera.sdk import Controller
from haptera.sdk.controlling import serve_controller
from haptera.sdk.host import NOTE_BYTES_MAX, serve
from haptera.sdk.target import Boot

LOG_BYTES_MAX: Final = 1 << 20
LAST_WORDS_BYTES: Final = 500
COMM_BYTES_MAX: Final = 15
# How long a module may take to end once its link is closed: it may be writing its last words.
END_WITHIN_S: Final = 2

# What a zygote imports before it forks modules.
PRELOAD: Final = ("haptera.runtime.process",)


class ModuleProcesses:
    """Each process of each module, by its number; what they say goes to `deliver`, in order.

    `places` says where each module is ("package.module:attribute"). A process writes its output
    to `log_dir`/NAME.log and keeps what must outlive it in `run_dir`. Those of `controllers` are
    started like modules, and served by these. Needs a running loop.
    """

    def __init__(
        self,
        zygote: LoopZygote,
        deliver: Callable[[list[Event]], None],
        *,
        places: Mapping[str, str],
        run_dir: Path,
        log_dir: Path,
        controllers: Controllers | None = None,
    ) -> None:
        self._controllers = controllers
        self._zygote = zygote
        self._deliver = deliver
        self._places = places
        self._run_dir = run_dir
        self._log_dir = log_dir
        self._running: dict[tuple[str, int], _Process] = {}

    def start(self, start: Start) -> None:
        """Start a process of a module; `Ready` or `Exited` is delivered later."""
        module = start.module
        assert (module, start.process) not in self._running, start
        log = log_of(self._log_dir, module)
        try:
            output = _opened(log)
        except OSError as error:
            gone: list[Event] = [Exited(module, f"was not started: {error}", start.process)]
            asyncio.get_running_loop().call_soon(self._deliver, gone)
            return
        ours, theirs = socket.socketpair()
        process = _Process(start, ours, log, self._deliver)
        if self._controllers is not None and self._controllers.place(module) is not None:
            process.served = self._controllers.serve(module, process.link)
        self._running[module, start.process] = process
        with theirs, output:
            self._fork(process, theirs.fileno(), output.fileno())

    def stop(self, stop: Stop) -> None:
        """Hang up on a process, which ends it; `Exited` is delivered once it is gone."""
        if (process := self._running.get((stop.module, stop.process))) is not None:
            process.hang_up()

    def call(self, call: Call, boot: Boot | None = None) -> None:
        """Send a call; where the module does not run it fails at once, without effect."""
        process = self._running.get((call.module, call.process))
        if process is None:
            text = f"module {call.module} does not run"
            self._deliver([Failed(call.id, text, refused=True)])
        else:
            process.call(call, boot)

    def cancel(self, cancel: Cancel) -> None:
        if (process := self._running.get((cancel.module, cancel.process))) is not None:
            process.cancel(cancel.call)

    def close(self) -> None:
        """Hang up on all modules, which ends them; nothing is delivered any more."""
        for process in self._running.values():
            process.link.close()
            process.let_go()
        self._running.clear()

    def _fork(self, process: "_Process", link: int, output: int) -> None:
        self._zygote.fork(
            *self._target(process.start),
            (link,),
            output=output,
            ended=lambda status: self._end(process, status),
        ).add_done_callback(lambda forked: self._forked(process, forked))

    def _target(self, start: Start) -> tuple[str, dict[str, Any]]:
        """What this process runs, and with which arguments."""
        controllers = self._controllers
        if controllers is not None and (place := controllers.place(start.module)) is not None:
            arguments = {**msgspec.structs.asdict(place), "desired": start.settings}
            return "haptera.runtime.process:controller_process", arguments
        arguments = {
            "name": start.module,
            "place": self._places[start.module],
            "run_dir": str(self._run_dir),
            "settings": start.settings,
        }
        return "haptera.runtime.process:module_process", arguments

    def _forked(self, process: "_Process", forked: asyncio.Future[Child]) -> None:
        if (error := forked.exception()) is not None:
            self._gone(process, f"was not started: {error}")
        elif self._running.get(process.key) is process:
            process.take_pidfd(forked.result().pidfd)
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
        self, start: Start, link: socket.socket, log: Path, deliver: Callable[[list[Event]], None]
    ) -> None:
        self.start = start
        self.link = FrameLink(link, self._take, self._break)
        self.served: Served | None = None
        self._log = log
        self._deliver = deliver
        self._pidfd: int | None = None
        self._breach: str | None = None
        self._doomed = False
        self._due: set[int] = set()
        self._end: asyncio.TimerHandle | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.start.module, self.start.process

    def take_pidfd(self, pidfd: int) -> None:
        self._pidfd = pidfd
        if self._doomed:
            self._kill()

    def let_go(self) -> None:
        if self.served is not None:
            self.served.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if self._end is not None:
            self._end.cancel()

    def how_it_ended(self, status: int) -> str:
        how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        said = _last_line(self._log) if status > 0 else self._breach
        return f"{how}: {said}" if said else how

    def _take(self, frames: list[Frame]) -> None:
        if self.served is None:
            events = [_event(self.start, frame) for frame in frames]
            self._deliver([event for event in events if self._is_due(event)])
            return
        for frame in frames:
            if frame.get("op") == "ready":
                self._deliver([_event(self.start, frame)])
            else:
                self.served.take(frame)

    def call(self, call: Call, boot: Boot | None) -> None:
        self._due.add(call.id)
        self.link.send(_call_frame(call, boot))

    def cancel(self, call: int) -> None:
        self._due.discard(call)
        self.link.send({"op": "cancel", "id": call})

    def _is_due(self, event: Event) -> bool:
        """A module speaks for the calls that it was given, not for those of others."""
        match event:
            case Sighted(call):
                return call in self._due
            case Answered(call) | Ended(call) | Failed(call):
                due = call in self._due
                self._due.discard(call)
                return due
            case _:
                return True

    def hang_up(self) -> None:
        """End it as the end of the daemon would."""
        self.link.close()
        self._break(None)

    def _break(self, text: str | None) -> None:
        """A module that cannot be spoken to any more is of no use: its end lets it start anew."""
        self._breach = text
        if text is None:
            self._end = asyncio.get_running_loop().call_later(END_WITHIN_S, self._kill)
        else:
            self._kill()

    def _kill(self) -> None:
        self._doomed = True
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)


def controller_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Be a controller, until its link is closed: a fork target."""
    place = msgspec.convert(arguments, ControllerPlace)
    desired = arguments["desired"]
    settings = place.settings | (
        msgspec.json.decode(desired, type=dict[str, Any]) if desired else {}
    )
    _name_process(f"control {place.name}")
    # Last, so that nothing in the folder is taken for a module of ours or of Python's.
    sys.path.append(place.folder)
    controller = resolve(place.place)
    if not isinstance(controller, Controller):
        raise HapteraError("is no controller", where=place.place, do="name a Controller")
    link = socket.socket(fileno=descriptors[0])
    asyncio.run(serve_controller(controller, place.name, link, settings))


def module_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Be a module, until its link is closed: a fork target."""
    _name_process(f"module {arguments['name']}")
    module = resolve(arguments["place"])
    link = socket.socket(fileno=descriptors[0])
    run_dir = Path(arguments["run_dir"])
    asyncio.run(serve(module, link, now=clock.now_ns, run_dir=run_dir))


def log_of(log_dir: Path, module: str) -> Path:
    """Where a module's process writes."""
    return log_dir / f"{module}.log"


def _name_process(name: str) -> None:
    Path("/proc/self/comm").write_bytes(name.encode()[:COMM_BYTES_MAX])


def _call_frame(call: Call, boot: Boot | None) -> Frame:
    entity = {"kind": call.entity.kind, "name": call.entity.name, "node": call.entity.node}
    secret = None
    if boot is not None:
        secret = {"token": boot.token, "ca": boot.ca_pem, "parent": boot.parent}
    return {
        "op": "call",
        "id": call.id,
        "work": call.work.value,
        "part": call.part,
        "entity": entity,
        "attributes": call.attributes,
        "values": call.values,
        "digest": call.digest,
        "deadline_ns": call.deadline_at,
        "intent": call.intent,
        "boot": secret,
    }


def _event(start: Start, frame: Frame) -> Event:
    """What a module's frame means; the module is who it is by its link, not by what it says.

    Raises:
        ValueError: it means nothing.
    """
    match frame:
        case {"op": "answered", "id": int(call), "value": str(value), "at_ns": int(at)}:
            return Answered(call, value, at, _note(frame))
        case {"op": "ended", "id": int(call)}:
            return Ended(call)
        case {"op": "failed", "id": int(call), "text": str(text), "refused": bool(refused)}:
            return Failed(call, text, refused)
        case {"op": "sighted", "id": int(call), "value": str(value), "at_ns": int(at)}:
            return Sighted(call, value, at, _note(frame))
        case {"op": "ready", "version": str(version)}:
            return Ready(start.module, start.process, version)
        case _:
            raise ValueError(f"it sent a frame {frame.get('op')!r} that means nothing")


def _note(frame: Frame) -> str | None:
    note = frame.get("note")
    if note is None or (isinstance(note, str) and len(note.encode()) <= NOTE_BYTES_MAX):
        return note
    raise ValueError("it sent a note that is none, or too long")


def _opened(log: Path) -> BinaryIO:
    """The log of a process that is about to start; a full one is put aside."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))
    return log.open("ab")


def _last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_WORDS_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
