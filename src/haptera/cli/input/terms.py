"""The options of what writes: what it takes, by which plan, and why."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar

import click

Result = TypeVar("Result")

# The option of each verb that changes something.
why_option = click.option("-m", "--why", metavar="TEXT", help="The reason, for the history.")


@dataclass(frozen=True, slots=True)
class WriteTerms:
    """Whether what others own is taken, the digest of the plan that is meant, and why."""

    take: bool
    digest: str | None
    why: str | None


def terms_options(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give a command --take, --digest and --why, as its `terms`."""

    @click.option("--take", is_flag=True, help="Take over values of other owners.")
    @click.option("--digest", metavar="HEX", help="The digest of the plan to apply.")
    @why_option
    @wraps(command)
    def with_terms(
        *given: object, take: bool, digest: str | None, why: str | None, **named: object
    ) -> Result:
        return command(*given, terms=WriteTerms(take, digest, why), **named)

    return with_terms
