"""A small process without threads or loop that forks others on request: fast, and always safely.

Its starter speaks to it over a socket pair of whole packets (SOCK_SEQPACKET);
`haptera.runtime.processes.forking` is the other side.
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
from typing import Any, Final, NoReturn

import msgspec

from haptera.model.errors import HapteraError

PACKET_BYTES_MAX: Final = 65_536
DESCRIPTORS_MAX: Final = 32

_PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Fork a process that runs `target`, "package.module:function", and ends.

    It is called with `arguments` and the list of the descriptors that came along; the last of
    these becomes its output where `output` says so. Only where it `survives` does it outlive the
    zygote.
    """

    id: int
    target: str
    arguments: dict[str, Any]
    output: bool
    survives: bool


class Forked(msgspec.Struct, frozen=True, tag="forked"):
    """It runs; its pidfd comes along."""

    id: int
    pid: int


class Unforked(msgspec.Struct, frozen=True, tag="unforked"):
    """It does not run, for this reason."""

    id: int
    text: str


class ProcessEnded(msgspec.Struct, frozen=True, tag="ended"):
    """A process that was asked for is gone; the status is -N for a signal N."""

    pid: int
    status: int


Notice = Forked | Unforked | ProcessEnded

_encoder: Final = msgspec.msgpack.Encoder()
_requests: Final = msgspec.msgpack.Decoder(Fork)


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


class Zygote:
    """The zygote's own loop: requests in, processes out, and its starter hears how they ended."""

    def __init__(self, control: socket.socket) -> None:
        control.settimeout(0)
        self._control = control
        self._children: dict[int, int] = {}  # by pidfd, the pid
        self._poll = select.epoll()
        self._poll.register(control.fileno(), select.EPOLLIN)

    def run(self) -> NoReturn:
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._children:
                    self._reap(descriptor)
                else:
                    self._hear()

    def _hear(self) -> None:
        """Do what one packet asks; with a starter that is gone, or sends what is none, end."""
        try:
            packet, descriptors = receive(self._control)
            request = _requests.decode(packet)
        except (ConnectionError, ValueError, RecursionError):
            os._exit(0)
        self._fork(request, descriptors)
        close_all(descriptors)

    def _fork(self, request: Fork, descriptors: list[int]) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._tell(Unforked(request.id, f"fork: {error.strerror}"))
            return
        if pid == 0:
            self._forget_all()
            _live(request, descriptors, parent)
        # Before anything can reap it, so that the number is surely its own.
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = pid
        self._poll.register(pidfd, select.EPOLLIN)
        self._tell(Forked(request.id, pid), [pidfd])

    def _reap(self, pidfd: int) -> None:
        pid = self._children.pop(pidfd)
        _, status = os.waitpid(pid, 0)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        self._tell(ProcessEnded(pid, os.waitstatus_to_exitcode(status)))

    def _tell(self, notice: Notice, descriptors: Collection[int] = ()) -> None:
        """Without waiting: a starter that is gone, or lets its socket fill up, has no zygote."""
        try:
            socket.send_fds(self._control, [_encoder.encode(notice)], list(descriptors))
        except (BlockingIOError, ConnectionError):
            os._exit(0)

    def _forget_all(self) -> None:
        """In a child: close what is the zygote's, through the objects that would close it later."""
        self._poll.close()
        self._control.close()
        close_all(self._children)


def receive(link: socket.socket) -> tuple[bytes, list[int]]:
    """One packet and the descriptors that came along.

    Raises:
        ConnectionError: the other side is gone, or what it sent was cut.
        BlockingIOError: there is none yet (on a socket that does not wait).
    """
    packet, descriptors, flags, _ = socket.recv_fds(
        link, PACKET_BYTES_MAX, DESCRIPTORS_MAX, socket.MSG_CMSG_CLOEXEC
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
