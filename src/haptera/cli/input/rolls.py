"""The options of a roll that is to begin, for those that begin it and that rehearse it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from haptera.cli.input import completing
from haptera.controllers.roll.beginning import RollRequest
from haptera.controllers.roll.observe import CANARY, UNAVAILABLE
from haptera.kinds.roll import OnFailure
from haptera.model.entity import check_name
from haptera.model.walltime import parse_duration_ms

_MS_PER_S: Final = 1_000
_OPTIONS: Final = (
    click.argument("selector", shell_complete=completing.selectors),
    click.option("--image", "image_name", metavar="NAME", required=True, help="The new image."),
    click.option("--name", help="Name of the roll; default: the image."),
    click.option(
        "--canary", metavar="N", type=click.IntRange(1), default=CANARY, show_default=True
    ),
    click.option(
        "--max-unavailable", metavar="COUNT|SHARE", default=UNAVAILABLE, show_default=True
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


def roll_request(selector: str, options: Mapping[str, Any], wall_s: float) -> RollRequest:
    """The roll that these options describe, at this time.

    Raises:
        HapteraError: its name is none, or its deadline.
    """
    return RollRequest(
        check_name(options["name"] or options["image_name"]),
        selector,
        options["image_name"],
        from_now_s(options["deadline"], wall_s),
        options["canary"],
        options["max_unavailable"],
        OnFailure.KEEP if options["pause_on_failure"] else OnFailure.GIVE_BACK,
        options["health"],
    )


def from_now_s(duration: str, wall_s: float) -> int:
    """The time after a duration, in seconds since 1970."""
    return int(wall_s) + parse_duration_ms(duration) // _MS_PER_S
