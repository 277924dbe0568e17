"""An optional SSH server in a minOS: Debian's dropbear, and the public keys that may log in."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_ssh_public_key, ssh_key_fingerprint

from haptera.minos.cpio import Entry, file, program
from haptera.minos.distribution import files_of, with_libraries
from haptera.model.errors import HapteraError

# The server, and what makes its host key at boot: an image that many machines boot holds none.
_PROGRAMS: Final = ("dropbear", "dropbearkey")
_WHY: Final = "ssh"


def read_keys(path: Path) -> list[str]:
    """The public keys in this file: one a line, as in `authorized_keys`, without options.

    Raises:
        HapteraError: it cannot be read, has none, or a line that is none.
    """
    do = "write lines as in a .pub file of `ssh-keygen`: KIND KEY COMMENT"
    keys = []
    # A comment may be in any encoding; a key is ASCII.
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise HapteraError(f"cannot be read: {error.strerror}", where=str(path)) from None
    for number, line in enumerate(text.split("\n"), 1):
        key = line.strip()
        if not key or key.startswith("#"):
            continue
        try:
            fingerprint(key)
        except (ValueError, UnsupportedAlgorithm):
            where = f"{path}:{number}"
            raise HapteraError("is not a public key", where=where, do=do) from None
        keys.append(key)
    if not keys:
        raise HapteraError("has no public key", where=str(path), do=do)
    return keys


def fingerprint(key: str) -> str:
    """The fingerprint of a public key, as `ssh-keygen -l` shows it.

    Raises:
        ValueError, UnsupportedAlgorithm: it is not a public key.
    """
    digest = ssh_key_fingerprint(load_ssh_public_key(key.encode()), SHA256())
    return f"SHA256:{b64encode(digest).decode().rstrip('=')}"


def ssh_entries(keys: Sequence[str]) -> list[Entry]:
    """The server with its libraries, and the keys that may log in.

    Raises:
        HapteraError: it is not installed.
    """
    binaries = [one for one in files_of("dropbear-bin") if one.name in _PROGRAMS]
    return [
        *(program(f"bin/{one.name}", one.read_bytes(), _WHY) for one in binaries),
        *with_libraries(binaries, _WHY),
        file("root/.ssh/authorized_keys", "".join(f"{key}\n" for key in keys).encode(), _WHY),
    ]
