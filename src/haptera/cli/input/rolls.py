"""The options of a roll that is to begin, for those that begin it and that rehearse it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from haptera.cli.input import completing
from haptera.kinds.roll import OnFailure
from haptera.model.walltime import parse_duration_ms
from haptera.rest.rolls import CANARY_DEFAULT, UNAVAILABLE_DEFAULT, RollBody

MS_PER_S: Final = 1_000
_OPTIONS: Final = (
    click.argument("selector", shell_complete=completing.selectors),
    click.option("--image", "image_name", metavar="NAME", required=True, help="The new image."),
    click.option("--name", help="Name of the roll; default: the image."),
    click.option(
        "--canary", metavar="N", type=click.IntRange(1), default=CANARY_DEFAULT, show_default=True
    ),
    click.option(
        "--max-unavailable", metavar="COUNT|SHARE", default=UNAVAILABLE_DEFAULT, show_default=True
    ),
    click.option(
        "--pause-on-failure", is_flag=True, help="Pause, and do not roll back a failed system."
    ),
    click.option("--health", metavar="COMMAND", help="Health check, run in each new system."),
)

deadline_option: Final = click.option(
    "--deadline",
    metavar="DURATION",
    default="2h",
    show_default=True,
    help="It halts then; what still waits for jobs keeps its old image.",
)
take_option: Final = click.option("--take", is_flag=True, help="Take over values of other owners.")


def roll_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what describes a roll that is to begin."""
    for one in reversed((*_OPTIONS, deadline_option, take_option)):
        command = one(command)
    return command


def roll_body(selector: str, options: Mapping[str, Any]) -> RollBody:
    """The roll that these options describe.

    Raises:
        HapteraError: its deadline is none.
    """
    return RollBody(
        image=options["image_name"],
        select=selector,
        name=options["name"],
        canary=options["canary"],
        unavailable=options["max_unavailable"],
        on_failure=OnFailure.KEEP if options["pause_on_failure"] else OnFailure.GIVE_BACK,
        health=options["health"],
        deadline_s=parse_duration_ms(options["deadline"]) // MS_PER_S,
    )
