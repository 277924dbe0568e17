"""Seals what is secret at rest, with a key that is given to the daemon and lies with none of it.

AES-256-GCM of the library cryptography (NIST SP 800-38D), by a key that HKDF-SHA256 (RFC 5869)
derives from the one given. With several keys, for a rotation, what is written is sealed with the
first. What an earlier version sealed, with Fernet (github.com/fernet/spec), is read too.
"""

import os
import stat
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from haptera.model.errors import HapteraError

# Names the file of keys, one a line; without it, the credential of systemd (systemd.exec(5)).
VARIABLE: Final = "HAPTERA_SECRETS_KEY"
CREDENTIAL: Final = "haptera-secrets"
# What is sealed begins so, with the version of the form and what tells its key; no secret may that
# is stored without.
_MARK: Final = b"haptera sealed "
_FORM: Final = _MARK + b"2 "
_NONCE_BYTES: Final = 12
KEYS_BYTES_MAX: Final = 4_096
_MAKE_ONE: Final = "openssl rand -base64 32 | tr '+/' '-_' makes a key"


class _Key:
    """One key, as somebody wrote it, and what it seals with; `begins` is how that begins.

    Raises:
        ValueError: it is none.
    """

    def __init__(self, given: bytes) -> None:
        self.fernet = Fernet(given)
        derived = HKDF(SHA256(), 32, salt=None, info=b"haptera sealed 2").derive(given)
        self.aead = AESGCM(derived)
        # Tells one key from another, and nothing of either.
        told = sha256(b"haptera secrets " + given).hexdigest()[:16].encode()
        self.begins = _FORM + told + b"\n"


class Sealer:
    """Seals and opens with the keys that this process was given; without any, nothing is sealed."""

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        self._keys = [_Key(one) for one in keys]

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
        return bool(self._keys) and not content.startswith(self._keys[0].begins)

    def sealed(self, value: bytes) -> bytes:
        """What is to be written of a secret."""
        if not self._keys:
            return value
        key, nonce = self._keys[0], os.urandom(_NONCE_BYTES)
        return key.begins + nonce + key.aead.encrypt(nonce, value, key.begins)

    def opened(self, content: bytes, what: str) -> bytes:
        """The secret of what was written, sealed or not.

        Raises:
            HapteraError: it is sealed with a key that is not given; `what` is.
        """
        if not is_sealed(content):
            return content
        if not self._keys:
            raise HapteraError(
                f"{what} is sealed, and no key is given",
                do=f"name the file of keys in {VARIABLE}, or as systemd's credential {CREDENTIAL}",
            )
        for key in self._keys:
            try:
                return _opened(content, key)
            except (InvalidTag, InvalidToken, ValueError):
                continue  # It is another's, or only a part is left.
        raise HapteraError(
            f"{what} is sealed with another key, or damaged",
            do="add its key; where it is damaged, restore a backup, or set the secret again",
        )


def _opened(content: bytes, key: _Key) -> bytes:
    begins, newline, rest = content.partition(b"\n")
    if not begins.startswith(_FORM):
        return key.fernet.decrypt(rest)
    return key.aead.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], begins + newline)


# Seals nothing, and opens what is not sealed.
UNSEALED: Final = Sealer()


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
