"""`haptera plan`: what would run if a site's files were applied, or answers to problems."""

import json
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from haptera.cli.input.plan_file import PlanFile, save_plan
from haptera.cli.input.problem_file import opened, problems
from haptera.cli.input.problem_line import Outcome, answer_line, explained_line
from haptera.cli.input.sites import site_body
from haptera.cli.main import client_of, the_access
from haptera.cli.output.plans import show_planned
from haptera.cli.output.printing import Format, entities_option, print_error, say
from haptera.cli.output.words import explained_lines, printable
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.model.answers.explained import Explained
from haptera.model.errors import HapteraError
from haptera.rest.schemas import AppliedView

EXIT_CODES: Final = {
    Outcome.CHAIN: 0,
    Outcome.NONE: 2,
    Outcome.BUDGET: 3,
    Outcome.MALFORMED: 64,
}
# How one problem is answered.
Answering = Callable[[bytes], tuple[Outcome, dict[str, Any]]]
_PATH: Final = click.Path(dir_okay=False, path_type=Path)


@click.command()
@answers(AppliedView)
@unwatched("a plan is a snapshot: `--save` it, and `haptera apply --plan FILE` shows changes since")
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("--save", metavar="FILE", type=_PATH, help="Save the plan, for `apply --plan FILE`.")
@click.option("--take", is_flag=True, help="Take over values of other owners.")
@click.option(
    "--problem", metavar="FILE", help="Solve planning problems, one JSON document a line."
)
@click.option("--explain", is_flag=True, help="With --problem: add reasons and alternatives.")
@entities_option
@click.pass_context
def plan(
    ctx: click.Context,
    files: tuple[str, ...],
    save: Path | None,
    take: bool,
    problem: str | None,
    explain: bool,
    output: str,
) -> int:
    r"""Show what would run if a site's files were applied.

    FILE is a path, a folder, or - for standard input; several files are one site.
    docs/reference/plans.md explains the output.

    With --problem the planner solves the problems in that file instead, without a parent
    (docs/reference/problem.md). Exit codes then: 0 all solved, 2 some have no plan, 3 some exceeded
    the search budget, 64 some are malformed; the greatest counts.

    \b
    Examples:
      haptera plan site.yaml
      haptera plan site.yaml --save night.plan
      haptera plan --problem problem.json --explain
    """
    if bool(files) == (problem is not None):
        raise click.UsageError("name either a site file or a file of problems (--problem)")
    if problem is not None:
        if save is not None or take:
            raise click.UsageError("--save and --take go with a site's files")
        if Format(output) is Format.NAME:
            raise click.UsageError("problems have no names: leave out -o name")
        return answer_problems(problem, output, explained_line if explain else answer_line)
    if explain:
        raise click.UsageError("--explain needs --problem; for entities: haptera chain ENTITY")
    access = the_access(ctx)
    body = site_body(files, access.constants)
    answer = client_of(ctx, access).ask(calls.apply(body, dry_run=True, take=take))
    if save is not None:
        save_plan(save, PlanFile(answer.plan, 1, site=body, take=take))
    show_planned(answer, output)
    return 0


def answer_problems(file: str, output: str, answer: Answering = answer_line) -> int:
    """Answer all problems of a file or of standard input (`-`), so; the exit code."""
    if Format(output) is Format.YAML:
        raise HapteraError("problems cannot be answered as YAML", where="-o yaml", do="use -o json")
    worst = Outcome.CHAIN
    order = list(Outcome)
    count = 0
    with opened(file) as stream:
        for count, problem in enumerate(problems(stream), start=1):
            outcome, told = answer(problem)
            worst = max(worst, outcome, key=order.index)
            if Format(output) is Format.JSON:
                say(json.dumps(told))  # All of it ASCII: no terminal can fail on it.
            else:
                _tell(count, told)
    if count == 0:
        where = "standard input" if file == "-" else file
        print_error(HapteraError("holds no problem", where=where, do="write one on each line"))
        return EXIT_CODES[Outcome.MALFORMED]
    return EXIT_CODES[worst]


def _tell(number: int, answer: dict[str, Any]) -> None:
    """One answer for people, a blank line before each but the first."""
    if number > 1:
        say()
    for line in _told(answer):
        say(printable(line))


def _told(answer: dict[str, Any]) -> Iterator[str]:
    if "error" in answer:
        yield f"malformed: {answer['error']['place']}: {answer['error']['text']}"
        return
    explained = msgspec.convert(answer["explained"], Explained) if "explained" in answer else None
    yield from _verdict(answer, [] if explained is None else explained.so_that)
    yield from (f"{label:<6} {line}" for label, line in explained_lines(explained))


def _verdict(answer: dict[str, Any], purposes: list[str | None]) -> Iterator[str]:
    """The chain, with the purpose of each link where that is given; or why there is none."""
    if answer["verdict"] != Outcome.CHAIN:
        yield f"no chain: {answer['reason']['text']}"
        return
    if not answer["chain"]:
        yield "nothing to do: the goal is met"
        return
    proven = ", and none costs less" if answer["optimal"] else ""
    doubts = ", if a remembered value is wrong" if answer["doubts"] else ""
    yield f"a chain that costs {answer['cost']}{proven}{doubts}"
    for place, (link, purpose) in enumerate(zip_longest(answer["chain"], purposes), start=1):
        yield f"{place}. {_link(link)}{'' if purpose is None else f', {purpose}'}"


def _link(link: dict[str, Any]) -> str:
    if "do" in link:
        return str(link["do"])
    return f"{link['look']}, {'hoping for' if link['hoped'] else 'expecting'} {link['expect']}"
