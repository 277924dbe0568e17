"""Writing what disrupts much: the plan is shown, and a person types its digest."""

import sys
from collections.abc import Callable

import click

from haptera.cli.output.plans import print_plan
from haptera.cli.output.printing import say
from haptera.client import ApiCall, Client, RefusedError
from haptera.model.answers.plan import Plan
from haptera.model.errors import Code, HapteraError
from haptera.model.text import shown
from haptera.rest.schemas import AppliedView

# The call that writes, if this digest is that of its plan; None names none.
Write = Callable[[str | None], ApiCall[AppliedView]]


def confirmed(client: Client, dry: ApiCall[AppliedView], write: Write) -> AppliedView:
    """Write it; where that needs the plan's digest, show the plan and have it typed.

    Raises:
        HapteraError: it is refused, or something else was typed.
    """
    try:
        return client.ask(write(None))
    except RefusedError as error:
        if error.code != Code.PLAN_REQUIRED or not sys.stdin.isatty():
            raise
    planned = client.ask(dry)
    print_plan(planned)
    type_digest(planned.plan)
    return client.ask(write(planned.plan.digest))


def agreed(question: str) -> bool:
    """Whether somebody says yes; where nobody sits, the end of the input is a no.

    Raises:
        Abort: Ctrl-C.
    """
    try:
        return click.confirm(f"\n{shown(question)}", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        say(err=True)
        return False


def type_digest(plan: Plan) -> None:
    """Have the person at the terminal type the digest of this plan.

    Raises:
        HapteraError: something else was typed.
    """
    text = str(click.prompt("\nto confirm, type the plan's digest", err=True)).strip()
    if text != plan.digest:
        what = f"{text!r} is not the digest of this plan: nothing was written"
        raise HapteraError(
            what,
            do="look at the plan, then type the digest that it ends with",
            code=Code.NOT_CONFIRMED,
        )
