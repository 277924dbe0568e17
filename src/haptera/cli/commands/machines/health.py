"""`haptera health`: the nodes that rules speak of, the rules, and what one would have said."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Final

import click
import msgspec

from haptera.cli.input.completing import files
from haptera.cli.lazy import Words
from haptera.cli.main import OK, the_client
from haptera.cli.output.printing import Format, names_option, output_option, print_data, print_names
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.client import calls
from haptera.health.bundled import BUNDLED, BY_NAME
from haptera.health.recorded import LINE_BYTES_MAX, RecordedSample, Told, parse_recorded, replay
from haptera.health.rule import Fingerprint, Grade, HealthRule, Trend, parse_pipeline
from haptera.kinds import health as kind
from haptera.kinds.rules import health_score as score_kind
from haptera.model.answers.views import EntityView
from haptera.model.declared.desired_check import nearest
from haptera.model.declared.schema import Plain
from haptera.model.errors import HapteraError, UnknownNameError, UnreadableError
from haptera.model.walltime import utc_text, utc_text_s

_TOLD: Final = ("TIME", "GRADE", "ENTITY", "SENSOR", "VALUE", "EXPECTED")
_NODES: Final = ("NODE", "GRADE", "CARE", "SINCE", "LIMIT MET", "SAYS")
_SCORES: Final = ("RULE", "CAME TRUE", "CAME NOT", "UNDECIDED", "PRECISION")
_RULES: Final = ("RULE", "GRADE", "MODE", "SENSORS", "PIPELINE", "SOURCE")


class HealthRuleForm(msgspec.Struct, frozen=True):
    """A health rule, as `-o json` prints it."""

    name: str
    sensors: str
    pipeline: str
    grade: Grade
    mode: str
    source: str


class ToldForm(msgspec.Struct, frozen=True):
    """The verdict of a rule from a time on (`at`, seconds since 1970); no grade: it has ended."""

    at: float
    entity: str
    series: str
    grade: Grade | None = None
    value: float | None = None
    expected_at: float | None = None


@click.group("health", cls=Words, invoke_without_command=True)
@answers(list[EntityView])
@unwatched("rules seldom say something else: run it again")
@names_option
@click.pass_context
def health(ctx: click.Context, output: str) -> int:
    r"""List the nodes that health rules speak of: how each is, and what is done about it.

    A node that is well is not listed.

    \b
    Examples:
      haptera health
      haptera health -o name

    Exit codes: 0 listed, 2 wrong usage, 3 no parent answers.
    """
    if ctx.invoked_subcommand is not None:
        return OK
    views = the_client(ctx).ask(calls.entities(kind=kind.kind.name)).entities
    if Format(output).for_people:
        rows = [_health_row(one) for one in views]
        print_table(_NODES, rows, output, none="no rule speaks of any node")
    else:
        print_names([one.name for one in views], views, output)
    return OK


@health.command("scores")
@answers(list[EntityView])
@unwatched("rules seldom say something else: run it again")
@names_option
@click.pass_context
def scores(ctx: click.Context, output: str) -> None:
    r"""List what became of the predictions of each health rule.

    A prediction is undecided if its machine was taken into care before. The precision is the share
    of the others that came true.

    \b
    Examples:
      haptera health scores
      haptera health scores -o json

    Exit codes: 0 listed, 2 wrong usage, 3 no parent answers.
    """
    views = the_client(ctx).ask(calls.entities(kind=score_kind.kind.name)).entities
    if Format(output).for_people:
        rows = [_score_row(one) for one in views]
        print_table(_SCORES, rows, output, none="no prediction has been decided")
    else:
        print_names([one.name for one in views], views, output)


@health.command("rules")
@answers(list[HealthRuleForm])
@unwatched("its output never changes")
@names_option
def rules(output: str) -> int:
    r"""List the health rules that come with haptera, each with the source of its limits.

    No parent is asked.

    \b
    Examples:
      haptera health rules
      haptera health rules -o json

    Exit codes: 0 listed, 2 wrong usage.
    """
    if Format(output).for_people:
        print_table(_RULES, [_row(one) for one in BUNDLED], output)
    else:
        print_names(BY_NAME, [_form(one) for one in BUNDLED], output)
    return OK


@health.command("test")
@answers(list[ToldForm])
@unwatched("it reads local files, for which there are no events: run it again")
@click.argument("rule", metavar="RULE")
@click.option(
    "--against", metavar="FILE", required=True, shell_complete=files, help="Recorded samples."
)
@click.option("--sensors", metavar="PATTERN", default="*", help="Of a pipeline: what it reads.")
@output_option
def test(rule: str, against: str, sensors: str, output: str) -> int:
    r"""Run a health rule over recorded samples, and print what it would have said, and when.

    RULE is the name of a rule (`haptera health rules`), or a pipeline of your own. FILE has one
    sample a line: objects of JSON with at, series, value and perhaps entity, or CSV with these as
    its first line. No parent is asked.

    \b
    Examples:
      haptera health test inlet-trend --against samples.csv
      haptera health test 'median 5 | above 40 clear 35 for 1m' --sensors temp.* --against s.json

    Exit codes: 0 it was run, 1 the rule or the file cannot be read, 2 wrong usage.
    """
    meant = _meant(rule, sensors)
    with _opened(against) as stream:
        told = [*replay(meant, _samples(stream, against))]
    if Format(output).for_people:
        print_table(_TOLD, [_told_row(one) for one in told], output, none="it says nothing")
    else:
        print_data([_told_form(one) for one in told], output)
    return OK


def _health_row(view: EntityView) -> tuple[str, ...]:
    def shown(plain: Plain) -> str:
        held = view.desired.get(plain.name)
        return "-" if held is None else str(held.value)

    def when(plain: Plain) -> str:
        text = shown(plain)
        return utc_text(int(text)) if text.isdecimal() else text

    return (
        view.name,
        shown(kind.grade),
        shown(kind.care),
        when(kind.since),
        when(kind.expected),
        shown(kind.says),
    )


def _score_row(view: EntityView) -> tuple[str, ...]:
    came_true, came_not, undecided = (
        0 if (held := view.desired.get(one.name)) is None else int(held.value)
        for one in (score_kind.came_true, score_kind.came_not, score_kind.undecided)
    )
    decided = came_true + came_not
    precision = "-" if decided == 0 else f"{100 * came_true / decided:.0f} %"
    return view.name, str(came_true), str(came_not), str(undecided), precision


def _meant(text: str, sensors: str) -> HealthRule:
    if text in BY_NAME:
        return BY_NAME[text]
    if " " not in text:
        raise UnknownNameError(f"there is no health rule {text!r}", do=nearest(text, BY_NAME))
    pipeline = parse_pipeline(text)
    if isinstance(pipeline.test, Fingerprint):
        what = "a fingerprint reads what other rules say"
        raise HapteraError(what, do="test each of these rules")
    grade = Grade.PREDICTED if isinstance(pipeline.test, Trend) else Grade.DEGRADED
    return HealthRule(text, sensors, pipeline, grade)


def _opened(file: str) -> AbstractContextManager[BinaryIO]:
    try:
        return Path(file).open("rb")
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise UnreadableError(what, where=file, do="name a file of samples") from error


def _samples(stream: BinaryIO, file: str) -> Iterator[RecordedSample]:
    return parse_recorded(iter(lambda: stream.readline(LINE_BYTES_MAX + 1), b""), file)


def _row(one: HealthRule) -> tuple[str, ...]:
    return one.name, one.grade, one.mode, one.sensors, str(one.pipeline), one.source


def _form(one: HealthRule) -> HealthRuleForm:
    return HealthRuleForm(one.name, one.sensors, str(one.pipeline), one.grade, one.mode, one.source)


def _told_row(one: Told) -> tuple[str, ...]:
    form = _told_form(one)
    grade = Grade.OK if form.grade is None else form.grade
    value = "" if form.value is None else f"{form.value:g}"
    expected = "" if form.expected_at is None else utc_text_s(int(form.expected_at))
    return utc_text_s(int(one.at)), grade, one.entity, one.series, value, expected


def _told_form(one: Told) -> ToldForm:
    if (found := one.symptom) is None:
        return ToldForm(one.at, one.entity, one.series)
    likely = None if found.expected is None else round(found.expected.likely, 3)
    return ToldForm(one.at, one.entity, one.series, found.grade, found.value, likely)
