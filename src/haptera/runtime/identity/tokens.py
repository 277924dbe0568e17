"""The text of a token, `hp1.ID.SECRET`, and what is stored of it: never the secret."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final

from haptera.model.token_scope import Scope as Scope

TOKEN_TTL_S: Final = 600.0
TOKEN_BYTES_MAX: Final = 128
_SECRET_BYTES: Final = 32
_ID_BYTES: Final = 8
_VERSION: Final = "hp1"


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its secret: for its holder's eyes."""

    id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        return f"{_VERSION}.{self.id}.{self.secret}"

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.secret.encode()).digest()

    def fits(self, sha256: bytes | None) -> bool:
        """Whether the stored hash is this secret's, in the same time whatever the answer."""
        same = hmac.compare_digest(self.sha256, bytes(32) if sha256 is None else sha256)
        return same and sha256 is not None


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who holds a token of the API, and what it allows: within a selector, or everywhere."""

    name: str
    scope: Scope
    within: str | None = None


@dataclass(frozen=True, slots=True)
class ApiToken:
    """What is stored of a token of the API."""

    id: str
    bearer: Bearer
    sha256: bytes = field(repr=False)
    made_s: float
    expires_s: float


@dataclass(frozen=True, slots=True)
class MintedToken:
    """A token that was just made, with its text, for its holder's eyes."""

    row: ApiToken
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Certified:
    """A certificate that stands for a token, which nobody knows; both in PEM, with its issuer's."""

    row: ApiToken
    certificate: bytes
    authority: bytes


def mint() -> Token:
    return Token(secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES))


def parse_token(text: str) -> Token | None:
    """Read `hp1.ID.SECRET`; None where it is not that."""
    if len(text) > TOKEN_BYTES_MAX or not text.isascii():
        return None
    version, _, rest = text.partition(".")
    name, dot, secret = rest.partition(".")
    return Token(name, secret) if version == _VERSION and dot else None
