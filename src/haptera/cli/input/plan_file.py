"""Plans in files: what was asked for and what would come of it, saved, read, and applied later."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from haptera.client import ApiCall, Client, RefusedError, calls
from haptera.core.preview.outdated import outdated
from haptera.model.answers.plan import Plan, digest_of
from haptera.model.errors import (
    Code,
    HapteraError,
    InputError,
    LimitError,
    ParseError,
    UnreadableError,
)
from haptera.rest.schemas import AppliedView, SiteBody

# A site as large as it may be, with the plan of a large cluster.
PLAN_BYTES_MAX: Final = 64 << 20
# Changes that are named one by one.
CHANGED_SHOWN_MAX: Final = 20


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A plan, and what it was made of: a `site`, or the write that a `revert` undoes.

    With `take`, values are taken over from those to whom they belong.
    """

    plan: Plan
    haptera_plan: Literal[1]
    site: SiteBody | None = None
    take: bool = False
    revert: int | None = None

    def call(
        self, *, dry_run: bool = False, digest: str | None = None, why: str | None = None
    ) -> ApiCall[AppliedView]:
        """What is asked of the server: the same once more."""
        if self.site is not None:
            return calls.apply(self.site, dry_run=dry_run, take=self.take, digest=digest, why=why)
        assert self.revert is not None, "it is of a site, or of a revert"
        return calls.revert(self.revert, dry_run=dry_run, digest=digest, why=why)


def save_plan(path: Path, file: PlanFile) -> None:
    """Write a plan down, in place of what was there.

    Raises:
        HapteraError: it cannot be written.
    """
    text = msgspec.json.format(msgspec.json.encode(file), indent=1)
    try:
        path.write_bytes(text)
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise HapteraError(
            what, where=str(path), do="name another file", code=Code.FILE_UNWRITABLE
        ) from None


def read_plan(path: Path) -> PlanFile:
    """A plan as it was saved.

    Raises:
        HapteraError: it cannot be read, is no plan, or was altered.
    """
    try:
        with path.open("rb") as file:
            text = file.read(PLAN_BYTES_MAX + 1)
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise UnreadableError(what, where=str(path), do="name a file of `plan --save`") from None
    try:
        return parse_plan(text)
    except HapteraError as error:
        do = "save it again: haptera plan … --save FILE"
        raise HapteraError(error.what, where=str(path), do=do, code=error.code) from None


def parse_plan(text: bytes) -> PlanFile:
    """Read what `save_plan` writes.

    Raises:
        HapteraError: it is too long, no plan, or was altered.
    """
    if len(text) > PLAN_BYTES_MAX:
        raise LimitError(f"is not a plan: it has more than {PLAN_BYTES_MAX:,} bytes")
    try:
        file = msgspec.json.decode(text, type=PlanFile)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"is not a plan: {str(error) or 'no JSON'}") from None
    if (file.site is None) == (file.revert is None):
        raise ParseError("is not a plan: it is of neither a site nor a revert, or of both")
    if digest_of(file.plan) != file.plan.digest:
        raise HapteraError("was altered: its digest is not that of its plan")
    return file


def apply_plan(client: Client, file: PlanFile, why: str | None) -> AppliedView:
    """Do what was planned, if nothing that the plan stands on has changed.

    Raises:
        HapteraError: something has, and the message names each; or it cannot be done.
    """
    try:
        return client.ask(file.call(digest=file.plan.digest, why=why))
    except RefusedError as error:
        if error.code != Code.PLAN_CHANGED:
            raise
    now = client.ask(file.call(dry_run=True)).plan
    raise InputError([*_changed(file.plan, now)])


def _changed(then: Plan, now: Plan) -> Iterator[HapteraError]:
    """What the plan stands on that is otherwise now."""
    do = "plan again, and check the new plan: nothing was applied"
    told = [*outdated(then, now)] or ["what it depends on was different for a moment"]
    for what in told[:CHANGED_SHOWN_MAX]:
        yield HapteraError(what, do=do, code=Code.PLAN_CHANGED)
    if len(told) > CHANGED_SHOWN_MAX:
        yield HapteraError(
            f"and {len(told) - CHANGED_SHOWN_MAX} more", do=do, code=Code.PLAN_CHANGED
        )
