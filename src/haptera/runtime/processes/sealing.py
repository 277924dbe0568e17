"""Seals secrets at rest, by a key that is given to the daemon and lies with none of its files.

Fernet of the library cryptography (AES-128-CBC and HMAC-SHA256; github.com/fernet/spec), several
keys for a rotation: what is written is sealed with the first, what is read may be with any.
"""

import os
import stat
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from haptera.model.errors import HapteraError

# Names the file of keys, one a line; without it, the credential of systemd (systemd.exec(5)).
VARIABLE: Final = "HAPTERA_SECRETS_KEY"
CREDENTIAL: Final = "haptera-secrets"
# What is sealed begins so, with what tells its key; no secret may that is stored without.
_MARK: Final = b"haptera sealed 1 "
KEYS_BYTES_MAX: Final = 4_096
_MAKE_ONE: Final = "openssl rand -base64 32 | tr '+/' '-_' makes a key"


class Sealer:
    """Seals and opens with the keys that this process was given; without any, nothing is sealed."""

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        self._keys = MultiFernet([Fernet(one) for one in keys]) if keys else None
        self._begins = b"".join(_MARK + _told(one) + b"\n" for one in keys[:1])

    @classmethod
    def given(cls) -> "Sealer":
        """By the keys in the file that is named, or in the credential of the daemon.

        Raises:
            HapteraError: it cannot be read, others can read it, or it holds something else.
        """
        path = key_file()
        return cls() if path is None else _given_in(path)

    def is_due(self, content: bytes) -> bool:
        """Whether what was written of a secret is to be sealed with the first of the keys yet."""
        return self._keys is not None and not content.startswith(self._begins)

    def sealed(self, value: bytes) -> bytes:
        """What is to be written of a secret."""
        return value if self._keys is None else self._begins + self._keys.encrypt(value)

    def opened(self, content: bytes, what: str) -> bytes:
        """The secret of what was written, sealed or not.

        Raises:
            HapteraError: it is sealed with a key that is not given; `what` is.
        """
        if not is_sealed(content):
            return content
        if self._keys is None:
            raise HapteraError(
                f"{what} is sealed, and no key is given",
                do=f"name the file of keys in {VARIABLE}, or as systemd's credential {CREDENTIAL}",
            )
        try:
            return self._keys.decrypt(content.partition(b"\n")[2])
        except InvalidToken:
            raise HapteraError(
                f"{what} is sealed with another key, or damaged", do="add its key, or set it again"
            ) from None


def is_sealed(content: bytes) -> bool:
    """Whether what was written of a secret tells nothing of it."""
    return content.startswith(_MARK)


def key_file() -> Path | None:
    """Where the keys are that this process was given; None: it was given none."""
    named, folder = os.environ.get(VARIABLE), os.environ.get("CREDENTIALS_DIRECTORY")
    if named is not None:
        return Path(named)
    credential = None if folder is None else Path(folder) / CREDENTIAL
    return credential if credential is not None and credential.exists() else None


def _told(key: bytes) -> bytes:
    """What tells one key from another, and nothing of either."""
    return sha256(b"haptera secrets " + key).hexdigest()[:16].encode()


def _given_in(path: Path) -> Sealer:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            keys = file.read(KEYS_BYTES_MAX).split()
        # Of a credential systemd sees to it that nobody else reads it, by other means than these.
        if VARIABLE in os.environ and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise HapteraError(
                "others can read the keys of secrets", where=str(path), do=f"chmod 600 {path}"
            )
        if keys:
            return Sealer(keys)
    except OSError as error:
        raise HapteraError(
            f"the keys of secrets cannot be read: {error.strerror}",
            where=str(path),
            do=f"see what {VARIABLE} names",
        ) from None
    except ValueError:
        pass
    raise HapteraError("this is no list of keys for secrets", where=str(path), do=_MAKE_ONE)
