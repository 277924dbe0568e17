"""What a token of the API allows."""

from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """What a token of the API allows; each includes the one before."""

    READ = "read"
    WRITE = "write"
    EXEC = "exec"
    ADMIN = "admin"


RANK: Final = {scope: rank for rank, scope in enumerate(Scope)}
