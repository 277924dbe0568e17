"""Bad input at the edge, told so that a person can mend it."""

from collections.abc import Sequence


class HapteraError(Exception):
    """Something given to us cannot be used: what is wrong, where, and what to do about it."""

    def __init__(self, what: str, *, where: str | None = None, do: str | None = None) -> None:
        super().__init__(what, where, do)
        self.what = what
        self.where = where
        self.do = do

    def __str__(self) -> str:
        place = "" if self.where is None else f"{self.where}: "
        advice = "" if self.do is None else f" ({self.do})"
        return f"{place}{self.what}{advice}"


class ConflictError(HapteraError):
    """What is asked for is sound, but something that is there already stands against it."""


class StorageError(HapteraError):
    """What is asked for is sound, but a file of ours that holds it cannot be read."""


class InputError(HapteraError):
    """Several things are wrong with one input; nothing of it was used. Reads as its first."""

    def __init__(self, errors: Sequence[HapteraError]) -> None:
        first = errors[0]
        super().__init__(first.what, where=first.where, do=first.do)
        self.errors = tuple(errors)
