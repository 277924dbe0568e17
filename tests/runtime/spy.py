"""`python -m tests.runtime.spy CONFINEMENT PATH...`: confined so, what of these it can reach."""

import ctypes
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from haptera.runtime.processes.confinement.capabilities import Capability
from haptera.runtime.processes.confinement.confinement import Confinement, confine_to

# Device files that no program takes for granted.
# The first is made by a test, in a /dev of its own.
DEVICES = ("/dev/haptera-spy", "/dev/fuse", "/dev/net/tun", "/dev/kmsg", "/dev/hwrng", "/dev/kvm")


def tried(deed):
    try:
        deed()
    except OSError as error:
        return type(error).__name__
    return "done"


def memory_of_the_parent():
    os.close(os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY))


def status(name):
    text = Path("/proc/self/status").read_bytes().decode()
    return dict(line.split(":\t") for line in text.splitlines())[name]


def port_served():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))


def device_opened():
    device = next(one for one in DEVICES if Path(one).exists())
    os.close(os.open(device, os.O_RDONLY))


def disk_made():
    """A new file of a disk, by which all files on it are reached, whoever hides them."""
    disk = Path(wanted.folder) / "disk"
    os.mknod(disk, 0o600 | stat.S_IFBLK, os.makedev(7, 0))
    os.close(os.open(disk, os.O_RDONLY))


def raw_socket_opened():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


def another_user_become():
    """In a process of its own."""
    program = "import os; os.setuid(12345)"
    if subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode:
        raise PermissionError


def mounted():
    libc = ctypes.CDLL(None, use_errno=True)
    folder = str(Path(wanted.folder)).encode()
    if libc.mount(b"tmpfs", folder, b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount")
    libc.umount2(folder, 0)


def undone():
    """What hides is unmounted, or written over, or all of it is mounted once more beside it."""
    libc = ctypes.CDLL(None, use_errno=True)
    place, own = str(paths[0].parent).encode(), str(Path(wanted.folder)).encode()
    remount = 0x1 << 5 | 0x1 << 12
    done = [
        not libc.umount2(place, 0),
        not libc.umount2(str(paths[0].parents[1]).encode(), 2),
        not libc.mount(None, b"/", None, remount, None),
        not libc.mount(b"/", own, None, 0x1 << 12, None),
    ]
    libc.umount2(own, 2)  # MNT_DETACH
    if not any(done):
        raise PermissionError


if __name__ == "__main__":
    wanted = msgspec.json.decode(sys.argv[1], type=Confinement)
    paths = [Path(one) for one in sys.argv[2:]]
    confine_to(wanted)
    own = Path(wanted.folder) / "mine"
    told = {
        "own": tried(lambda: own.write_text("x")),
        "kill": tried(lambda: os.kill(os.getppid(), signal.SIGURG)),
        "trace": tried(memory_of_the_parent),
        "privileges": status("NoNewPrivs"),
        "uid": os.getuid(),
        "read": {one.name: tried(one.read_bytes) for one in paths},
        "replaced": {one.name: tried(one.unlink) for one in paths},
        "listed": tried(lambda: os.listdir(paths[0].parent)),
        "made": tried(lambda: (paths[0].parent / "new").write_text("x")),
        "power": {
            "elsewhere": tried(lambda: Path("/etc/haptera-spy").touch()),
            "device": tried(device_opened),
            "disk": tried(disk_made),
            "port": tried(port_served),
            "raw": tried(raw_socket_opened),
            "user": tried(another_user_become),
            "mount": tried(mounted),
            "undone": tried(undone),
        },
    }
    told["capabilities"] = sorted(
        one.name.lower()
        for one in Capability
        if (int(status("CapEff"), 16) | int(status("CapBnd"), 16)) >> one & 1
    )
    with suppress(OSError):
        Path("/etc/haptera-spy").unlink()
    sys.stdout.write(json.dumps(told))
