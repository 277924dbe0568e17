"""What a check comes to: passed, failed or skipped, what was seen, and what to do."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# Of what a module said, so much is repeated.
SEEN_MAX: Final = 300


class CheckVerdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class CheckFailed(Exception):  # noqa: N818 - the module's fault, not one of ours
    """The module is not as it must be: what was seen, and what to do about it."""

    def __init__(self, seen: str, do: str) -> None:
        super().__init__(seen)
        self.seen = seen
        self.do = do


class Skipped(Exception):  # noqa: N818 - nobody's fault
    """It could not be checked: why, and what would let it be, if anything does."""

    def __init__(self, seen: str, do: str | None = None) -> None:
        super().__init__(seen)
        self.seen = seen
        self.do = do


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check, by its name, and what came of it."""

    name: str
    verdict: CheckVerdict
    seen: str
    do: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one module, in order; its name as it says itself, once it has said it."""

    module: str | None
    checks: tuple[CheckResult, ...]

    def count(self, verdict: CheckVerdict) -> int:
        return sum(one.verdict is verdict for one in self.checks)


def quoted(content: object) -> str:
    """What the module said, cut to what a person reads."""
    text = repr(content)
    return text if len(text) <= SEEN_MAX else f"{text[:SEEN_MAX]}…"
