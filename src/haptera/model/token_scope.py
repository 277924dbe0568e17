"""What a token of the API allows."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Scope(StrEnum):
    """The rights of an API token; each scope includes the one before, but `report` stands apart.

    Only `admin` includes it.
    """

    READ = "read"
    WRITE = "write"
    EXEC = "exec"
    ADMIN = "admin"
    REPORT = "report"

    def includes(self, asked: "Scope") -> bool:
        """True if a token of this scope may do what needs the one that is asked for."""
        return asked in INCLUDED[self]


INCLUDED: Final[Mapping[Scope, frozenset[Scope]]] = MappingProxyType(
    {
        Scope.REPORT: frozenset((Scope.REPORT,)),
        Scope.READ: frozenset((Scope.READ,)),
        Scope.WRITE: frozenset((Scope.READ, Scope.WRITE)),
        Scope.EXEC: frozenset((Scope.READ, Scope.WRITE, Scope.EXEC)),
        Scope.ADMIN: frozenset(Scope),
    }
)
