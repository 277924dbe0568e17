"""Writing by plan: the answer shows what changes would start, and wide ones need its digest."""

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from starlette.requests import Request

from haptera.api.backend import Desires
from haptera.api.requests.endpoint import dry_run
from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.model.answers.plan import DIGEST_DIGITS, Plan
from haptera.model.changes import Author, Change
from haptera.model.errors import Code, HapteraError
from haptera.planner.domain.pieces import Pieces, slices
from haptera.rest.schemas import AppliedView, ChangeView, change_view
from haptera.runtime.over_turns import over_turns
from haptera.runtime.store.optimistic_write import write

_DIGEST = re.compile(f"[0-9a-f]{{{DIGEST_DIGITS}}}")
Make = Callable[[], Awaitable[tuple[Change, ...]]]


@dataclass(frozen=True, slots=True)
class Planning:
    """Writes by plan: one that disrupts over `radius_percent` of the nodes needs its digest."""

    desires: Desires

    async def apply(
        self, request: Request, make: Make, author: Author, if_revision: int | None = None
    ) -> AppliedView:
        """Write what `make` makes of the present state, or only say what that would start.

        Raises:
            HapteraError: it is not what its digest says, or it needs one.
            HapteraError: it cannot be written.
        """
        plans: list[Plan] = []
        if dry_run(request):
            revision, changes = self.desires.revision(), await make()
            plans.append(await self.desires.preview(changes))
        else:
            checked = self.checked(make, digest_in(request), plans)
            revision, changes = await write(self.desires, checked, author, if_revision)
        views = await over_turns(_views(changes))
        return AppliedView(revision, views, plans[-1], self.is_wide(plans[-1]))

    def checked(self, make: Make, digest: str | None, plans: list[Plan], besides: int = 0) -> Make:
        """As `make`, refused unless it may be written so; `plans` gets what it starts, each time.

        The same request disrupts so many nodes `besides`.

        Raises:
            HapteraError: then, by what is returned: see `apply`.
        """

        async def made() -> tuple[Change, ...]:
            changes = await make()
            plans.append(await self.desires.preview(changes))
            self._check(plans[-1], digest, besides)
            return changes

        return made

    def is_wide(self, plan: Plan) -> bool:
        """Whether a plan needs its digest."""
        return plan.is_wide(self.desires.radius_percent)

    def _check(self, plan: Plan, digest: str | None, besides: int) -> None:
        if digest is None and plan.is_wide(self.desires.radius_percent, besides):
            more = f" besides {besides} by earlier parts of the same request" if besides else ""
            raise HapteraError(
                f"this disrupts up to {plan.disrupted_nodes} of {plan.nodes} nodes{more}, more than"
                f" {self.desires.radius_percent} %: {plan.disrupted}",
                where="the plan",
                do="look at the plan (haptera plan, or dry_run=1), then confirm it with its digest:"
                " --digest HEX, or digest=HEX",
                code=Code.PLAN_REQUIRED,
            )
        if digest is not None and digest != plan.digest:
            raise HapteraError(
                f"the plan {digest} is out of date: what it depends on has changed,"
                f" and it is {plan.digest} now",
                where="digest in the query",
                do="plan again, look at the differences, and give the new plan's digest",
                code=Code.PLAN_CHANGED,
            )


def _views(changes: Iterable[Change]) -> Pieces[list[ChangeView]]:
    views = list[ChangeView]()
    for some in slices(changes, READ_AT_ONCE):
        views += map(change_view, some)
        yield READING_EACH * len(some)
    return views


def digest_in(request: Request) -> str | None:
    """The digest that the query names, if it does."""
    text = request.query_params.get("digest")
    if text is not None and _DIGEST.fullmatch(text) is None:
        raise HapteraError(
            f"{text!r} is not a plan digest",
            where="digest in the query",
            do=f"send the {DIGEST_DIGITS} digits that the plan ends with",
        )
    return text
