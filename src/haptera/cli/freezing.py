"""`haptera freeze` and `haptera thaw`: automation stopped for a while, and let go on."""

import click

from haptera.api.shapes import FreezeView
from haptera.cli import completing
from haptera.cli.main import the_client
from haptera.cli.printing import Format, output_option, print_data, print_table
from haptera.cli.words import printable
from haptera.client import calls
from haptera.model.errors import HapteraError
from haptera.model.walltime import parse_duration_ms, utc_text

EVER = "ever"


@click.command()
@click.argument("selector", required=False, shell_complete=completing.selectors)
@click.option("--reason", help="Why, for whoever finds it frozen.")
@click.option(
    "--for", "duration", default="1h", help="30s, 15m, 2h, 1d, or ever; an hour if not given."
)
@output_option
@click.pass_context
def freeze(
    ctx: click.Context, selector: str | None, reason: str | None, duration: str, output: str
) -> None:
    r"""Begin no step on what SELECTOR names, or show what is frozen.

    It is looked at as before, and a step that has begun is followed to its end. SELECTOR goes by
    names, groups and attributes: rack1n[1-4] (the nodes and all on them), service:web@@gpu, ….

    \b
    Examples:
      haptera freeze rack1n[1-4] --reason "new fans" --for 2h
      haptera freeze
    """
    client = the_client(ctx)
    if selector is None:
        if reason is not None:
            raise click.UsageError("a reason, but no SELECTOR: name what to freeze")
        frozen = client.ask(calls.freezes())
        if Format(output) is Format.TABLE:
            _print_freezes(frozen.freezes)
        else:
            print_data(frozen.freezes, output)
        return
    if reason is None:
        raise HapteraError("there is no reason", do="say why it is frozen: --reason TEXT")
    for_s = None if duration == EVER else _seconds(duration)
    view = client.ask(calls.freeze(selector, reason, for_s=for_s))
    if Format(output) is Format.TABLE:
        click.echo(f"frozen: {_sentence(view)}")
    else:
        print_data(view, output)
    if view.entities == 0:
        click.secho(f"warning: {selector} selects nothing that is declared", err=True, fg="yellow")


@click.command()
@click.argument("selector", shell_complete=completing.selectors)
@output_option
@click.pass_context
def thaw(ctx: click.Context, selector: str, output: str) -> None:
    r"""Let go on what SELECTOR names; of what was frozen with it, the rest stays frozen.

    \b
    Examples:
      haptera thaw rack1n[1-4]
      haptera thaw service:web@rack1n1
    """
    answer = the_client(ctx).ask(calls.thaw(selector))
    if Format(output) is not Format.TABLE:
        print_data(answer, output)
        return
    for one in answer.thawed:
        rest = "" if one.rest is None else f"; {one.rest} stays frozen"
        click.echo(f"thawed: {one.thawed}, frozen by {one.owner}{rest}")
    click.echo(f"{_counted(len(answer.free))} free again")
    for view in answer.freezes:
        click.echo(f"still frozen: {_sentence(view)}")


def _print_freezes(views: list[FreezeView]) -> None:
    if not views:
        click.echo("nothing is frozen")
        return
    print_table(
        [
            (one.selector, _until(one), one.owner, _counted(one.entities), printable(one.reason))
            for one in views
        ]
    )


def _sentence(view: FreezeView) -> str:
    reason = printable(view.reason)
    return f"{view.selector} ({_counted(view.entities)}) {_until(view)}, by {view.owner}: {reason}"


def _until(view: FreezeView) -> str:
    return "until thawed" if view.until_s is None else f"until {utc_text(view.until_s)}"


def _counted(entities: int) -> str:
    return f"{entities} entit{'y' if entities == 1 else 'ies'}"


def _seconds(duration: str) -> int:
    """A part of a second counts as one."""
    return -(-parse_duration_ms(duration) // 1000)
