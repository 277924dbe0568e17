"""What is wrong with a request, as JSON: for the API and the command line alike."""

import msgspec

from haptera.model.errors import HapteraError


class SiteFault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong; docs/reference/errors.md lists the codes."""

    code: str
    what: str
    where: str | None = None
    do: str | None = None


def fault(error: HapteraError) -> SiteFault:
    return SiteFault(error.code, error.what, error.where, error.do)


class Faults(msgspec.Struct, frozen=True):
    """All that is wrong, as the command line tells programs."""

    errors: list[SiteFault]


class ProblemView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A problem document: `errors` holds all that is wrong, the first again in the members."""

    title: str
    status: int
    code: str
    detail: str
    what: str
    where: str | None = None
    do: str | None = None
    errors: tuple[SiteFault, ...] = ()
