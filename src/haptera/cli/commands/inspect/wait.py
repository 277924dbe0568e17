"""`haptera wait`: until entities are as desired, or as somebody says."""

import shlex
from collections.abc import Callable
from typing import Any, Final, TypeVar, assert_never

import click
import msgspec

from haptera.cli.input import completing
from haptera.cli.input.selected import selected
from haptera.cli.main import NOT_CONVERGED, the_client
from haptera.cli.output.printing import Format, print_error
from haptera.cli.output.standing import print_standing
from haptera.cli.verb import former_option, unwatched
from haptera.client import Client
from haptera.model.answers.views import SETTLED, Condition
from haptera.model.errors import Code, HapteraError
from haptera.model.walltime import parse_duration_ms
from haptera.selectors.selector import ALL, parse_selector
from haptera.selectors.selector_ast import Age, Amount, Comparison, Pattern, parts_of

Command = TypeVar("Command", bound=Callable[..., Any])

CONVERGED: Final = Condition.CONVERGED.value
GONE: Final = "gone"
WITHIN: Final = "10m"
_MS_PER_S: Final = 1_000


def within_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """For how long somebody waits."""
    option = click.option(
        "--within",
        metavar="DURATION",
        default=WITHIN,
        show_default=True,
        callback=_checked,
        help="Give up after this time: 30s, 10m, 2h.",
    )
    return option(former_option("--timeout", "--within")(command))


def _checked(_ctx: click.Context, _option: click.Parameter, within: str) -> str:
    """See that it is a duration, before anything is written that is waited for then."""
    parse_duration_ms(within)
    return within


@click.command()
@unwatched("it ends when the condition holds")
@click.argument("selector", metavar="ENTITY|SELECTOR", shell_complete=completing.selectors)
@click.option(
    "--for",
    "standing",
    metavar="WHAT",
    default=CONVERGED,
    show_default=True,
    help="converged, idle, acting, waiting, stuck, gone, or a comparison like power=off.",
)
@within_option
@click.pass_context
def wait(ctx: click.Context, selector: str, standing: str, within: str) -> int:
    r"""Wait until everything that SELECTOR matches is as desired, or as --for says.

    Entities without desired values count as converged. On a timeout, exits with 4 and shows what is
    left. Exits with 1 if SELECTOR matches nothing.

    \b
    Examples:
      haptera wait rack1n[1-4]
      haptera wait rack1n1 --for power=off --within 2m
      haptera wait service:web --for gone
    """
    client = the_client(ctx)
    if standing != GONE:
        selected(client, selector)
        selected(client, _concerned(selector, standing))
    return wait_for(client, selector, standing, within)


def wait_for(client: Client, selector: str, standing: str, within: str) -> int:
    """Wait until all that a selector means stands so; an exit code.

    Raises:
        HapteraError: it cannot be waited for, or the parent does not tell.
    """
    from haptera.cli.output.live.waiting import wait_until_none  # only here: it brings asyncio

    others = _concerned(selector, standing)
    if standing != GONE:
        others += f" and not ({_expression(standing)})"
    parse_selector(others)
    left = wait_until_none(client.access, selector, others, parse_duration_ms(within) / _MS_PER_S)
    if not left:
        return 0
    count = sum(one.count for one in left)
    what = f"{count} of {selector} {'is' if count == 1 else 'are'} not {standing} within {within}"
    # What is as desired has nothing to be asked why of.
    settled = all(one.condition in SETTLED for one in left)
    asked = shlex.quote(selector)
    do = f"see how it is: haptera get {asked}" if settled else f"ask why: haptera why {asked}"
    print_error(HapteraError(what, do=do, code=Code.NOT_CONVERGED))
    print_standing(left, Format.TABLE)
    return NOT_CONVERGED


def _concerned(selector: str, standing: str) -> str:
    """Those of a selector that can stand so: who waits for power waits for nothing on the nodes.

    >>> _concerned("n1", "converged"), _concerned("n1", "power=off and age(power)<1m")
    ('(n1)', '(n1) and (power=off or power!=off or age(power)>=0s)')
    """
    if standing in (GONE, *Condition):
        return f"({selector})"
    having = dict.fromkeys(map(_having, parts_of(parse_selector(_expression(standing)).choice)))
    return f"({selector}) and ({' or '.join(having)})"


def _having(part: Pattern | Comparison | Age | Amount) -> str:
    """What means all that have what is compared, whatever its value."""
    match part:
        case Pattern():
            return ALL
        case Age(datum):
            return f"age({datum})>=0s"
        case Amount(series):
            return f"{series}>=-1e18"
        case Comparison(datum, values):
            value = values[0]
            quoted = value if value.isalnum() else msgspec.json.encode(value).decode()
            return f"{datum}={quoted} or {datum}!={quoted}"
        case _:
            assert_never(part)


def _expression(standing: str) -> str:
    """As a selector."""
    if standing == CONVERGED:
        return f"condition in ({','.join(SETTLED)})"
    if standing in list(Condition):
        return f"condition={standing}"
    try:
        choice = parse_selector(standing)
    except HapteraError:
        choice = None
    if choice is None or choice.by_name:
        conditions = ", ".join(Condition)
        raise HapteraError(
            f"{standing!r} is not a condition to wait for",
            where="--for",
            do=f"name a condition ({conditions}), gone, or a comparison like power=off",
        )
    return standing
