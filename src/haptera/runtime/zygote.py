"""A small process without threads or loop that forks others on request: fast, and always safely.

Its starter speaks to it over a socket pair of whole packets (SOCK_SEQPACKET); a `channel` is
one more such pair, for another process to ask over. `haptera.runtime.forking` is the other side.
"""

import ctypes
import gc
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Collection
from importlib import import_module
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from haptera.model.errors import HapteraError

PACKET_BYTES_MAX: Final = 65_536
DESCRIPTORS_MAX: Final = 32
CHANNELS_MAX: Final = 256

_PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Fork a process that runs `target`, "package.module:function", and ends.

    It is called with `arguments` and the list of the descriptors that came along; the last of
    these becomes its output where `output` says so. With `session` it leads one of its own; only
    where it `survives` does it outlive the zygote.
    """

    id: int
    target: str
    arguments: dict[str, Any]
    output: bool
    session: bool
    survives: bool


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Answer with one more socket that takes requests."""

    id: int


class Forked(msgspec.Struct, frozen=True, tag="forked"):
    """It runs; its pidfd comes along."""

    id: int
    pid: int


class Unforked(msgspec.Struct, frozen=True, tag="unforked"):
    """It does not run, for this reason."""

    id: int
    text: str


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The socket asked for comes along."""

    id: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A process that was asked for over this socket is gone; the status is -N for a signal N."""

    pid: int
    status: int


Request = Fork | Open
Notice = Forked | Unforked | Opened | Ended

_encoder: Final = msgspec.msgpack.Encoder()
_requests: Final = msgspec.msgpack.Decoder(Request)


def main() -> NoReturn:
    """Be a zygote: the descriptor of its socket and what to import first are in `sys.argv`."""
    control, preload = int(sys.argv[1]), sys.argv[2:]
    be_zygote(control, preload, starter=os.getppid())


def be_zygote(control: int, preload: Collection[str], *, starter: int) -> NoReturn:
    """Import, freeze, and serve until the starter is gone; never returns."""
    gc.disable()
    die_with(starter)
    _reset_signals()
    for name in preload:
        import_module(name)
    if len(os.listdir("/proc/self/task")) > 1:
        raise HapteraError(f"one of {', '.join(preload)} starts a thread, and forks would break")
    gc.collect()
    gc.freeze()
    Zygote(socket.socket(fileno=control)).run()


def die_with(parent: int) -> None:
    """Have this process killed when `parent` ends; it may have ended already."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(1)


class _Child(NamedTuple):
    pid: int
    asked_over: int


class Zygote:
    """The zygote's own loop: requests in, processes out, and who asked hears how they ended."""

    def __init__(self, control: socket.socket) -> None:
        self._first = control.fileno()
        self._channels: dict[int, socket.socket] = {}
        self._children: dict[int, _Child] = {}
        self._poll = select.epoll()
        self._take_channel(control)

    def run(self) -> NoReturn:
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._children:
                    self._reap(descriptor)
                elif descriptor in self._channels:
                    self._hear(descriptor)

    def _take_channel(self, channel: socket.socket) -> None:
        channel.settimeout(0)
        self._channels[channel.fileno()] = channel
        self._poll.register(channel.fileno(), select.EPOLLIN)

    def _hear(self, channel: int) -> None:
        """Do what one packet asks; who sends what is none, or is gone, is cut off."""
        try:
            packet, descriptors = receive(self._channels[channel])
        except ConnectionError:
            self._cut(channel)
            return
        try:
            request = _requests.decode(packet)
        except msgspec.DecodeError:
            self._cut(channel)
        else:
            self._answer(channel, request, descriptors)
        finally:
            close_all(descriptors)

    def _answer(self, channel: int, request: Request, descriptors: list[int]) -> None:
        match request:
            case Fork():
                self._fork(channel, request, descriptors)
            case Open() if len(self._channels) < CHANNELS_MAX:
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                self._take_channel(ours)
                self._tell(channel, Opened(request.id), [theirs.fileno()])
                theirs.close()
            case Open():
                self._tell(channel, Unforked(request.id, f"{CHANNELS_MAX} channels are open"))

    def _fork(self, channel: int, request: Fork, descriptors: list[int]) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._tell(channel, Unforked(request.id, f"fork: {error.strerror}"))
            return
        if pid == 0:
            self._forget_all()
            _live(request, descriptors, parent)
        # Before anything can reap it, so that the number is surely its own.
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = _Child(pid, channel)
        self._poll.register(pidfd, select.EPOLLIN)
        self._tell(channel, Forked(request.id, pid), [pidfd])

    def _reap(self, pidfd: int) -> None:
        child = self._children.pop(pidfd)
        _, status = os.waitpid(child.pid, 0)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        self._tell(child.asked_over, Ended(child.pid, os.waitstatus_to_exitcode(status)))

    def _tell(self, channel: int, notice: Notice, descriptors: Collection[int] = ()) -> None:
        """Without waiting: who lets its socket fill up is cut off, and hears of it so."""
        if channel not in self._channels:
            return
        try:
            socket.send_fds(self._channels[channel], [_encoder.encode(notice)], list(descriptors))
        except (BlockingIOError, ConnectionError):
            self._cut(channel)

    def _cut(self, channel: int) -> None:
        """Its processes live on; a later channel of the same number must not hear of them."""
        if channel == self._first:
            os._exit(0)
        self._poll.unregister(channel)
        self._channels.pop(channel).close()
        for pidfd, child in self._children.items():
            if child.asked_over == channel:
                self._children[pidfd] = child._replace(asked_over=-1)

    def _forget_all(self) -> None:
        """In a child: close what is the zygote's, through the objects that would close it later."""
        self._poll.close()
        for channel in self._channels.values():
            channel.close()
        close_all(self._children)


def receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    """One packet and the descriptors that came along.

    Raises:
        ConnectionError: the other side is gone, or what it sent was cut.
        BlockingIOError: there is none yet (on a socket that does not wait).
    """
    packet, descriptors, flags, _ = socket.recv_fds(
        channel, PACKET_BYTES_MAX, DESCRIPTORS_MAX, socket.MSG_CMSG_CLOEXEC
    )
    if not packet or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        close_all(descriptors)
        raise ConnectionError("the other side of the socket is gone, or sent too much")
    return packet, descriptors


def close_all(descriptors: Collection[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def close_others(keep: Collection[int]) -> None:
    """Close all descriptors but the standard ones and these."""
    low = 3
    for descriptor in sorted({one for one in keep if one >= low}):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


def _live(request: Fork, descriptors: list[int], parent: int) -> NoReturn:
    """Be the child, to the end: whatever happens, do not return into the zygote's frames."""
    status = 1
    try:
        _settle(request, descriptors, parent)
        resolve(request.target)(request.arguments, descriptors)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - its last words, before a process that ends anyway
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _settle(request: Fork, descriptors: list[int], parent: int) -> None:
    """Be as a process that was just started; the signals are so in the zygote already."""
    if not request.survives:
        die_with(parent)
    if request.output:
        output = descriptors.pop()
        os.dup2(output, 1)
        os.dup2(output, 2)
    close_others(descriptors)
    if request.session:
        os.setsid()
    gc.enable()


def resolve(target: str) -> Any:
    """What "package.module:name" names; `pkgutil.resolve_name` compiles a pattern in each fork."""
    place, _, name = target.partition(":")
    return getattr(import_module(place), name)


def _reset_signals() -> None:
    """Take and ignore signals as a Python process that was just started; all forks inherit it."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, _fresh(number))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _fresh(number: int) -> Any:
    if number == signal.SIGINT:
        return signal.default_int_handler
    return signal.SIG_IGN if number in (signal.SIGPIPE, signal.SIGXFSZ) else signal.SIG_DFL


if __name__ == "__main__":
    main()
