"""`haptera get`: how entities are, or were; and jobs."""

import re
from collections.abc import Sequence
from contextlib import suppress

import click

from haptera.cli.input import completing
from haptera.cli.input.selected import past, selected, selected_jobs
from haptera.cli.main import the_client
from haptera.cli.output.alike import ToldEntity, print_alike
from haptera.cli.output.job_words import print_jobs
from haptera.cli.output.live.redrawing import (
    keep_asking,
    keep_showing,
    only_tables,
    watch_option,
)
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.output.words import as_read, printable, standing, values
from haptera.cli.verb import answers
from haptera.client import Client, RefusedError, calls, sample_calls
from haptera.kinds import KINDS
from haptera.model.answers.past import PastView
from haptera.model.answers.views import EntityView
from haptera.model.declared.desired_check import nearest
from haptera.model.errors import Code, HapteraError, UnknownNameError
from haptera.model.walltime import parse_duration_ms, utc_text_s
from haptera.rest.job_selector import JOB, is_of_jobs
from haptera.rest.jobs import JOBS_MAX, JobView
from haptera.rest.schemas import Past

# One word, and one entity, on whatever node it is: neither can mean many.
_WORD = re.compile(r"[A-Za-z0-9._-]+")
_ENTITY = re.compile(rf"node:{_WORD.pattern}|{_WORD.pattern}:{_WORD.pattern}@{_WORD.pattern}")
_NOW = ("ENTITY", "CONDITION", "FOR", "STATE")
_MORE = ("ATTRIBUTES", "REASON")
_THEN = ("ENTITY", "CONDITION", "STATE", "REASON")
# How the first one of a kind comes to be, where that is not by a site file.
_MADE_BY = {
    "freeze": "`haptera freeze SELECTOR -m TEXT` makes one",
    "health": "the parent makes one of a node that a health rule speaks of",
    "image": "`haptera image build NAME DIR` makes one",
    "instance": "pools make them; declare one in the site file, then haptera apply FILE",
    "job": "`haptera submit COMMAND` makes one",
    "lease": "groups have them; declare one in the site file, then haptera apply FILE",
    "replica": "groups have them; declare one in the site file, then haptera apply FILE",
    "roll": "`haptera roll SELECTOR --image NAME` begins one",
}
_DECLARED = "declare one in the site file, then haptera apply FILE"


@click.command()
@answers(EntityView, list[EntityView], list[PastView], JobView, list[JobView])
@click.argument(
    "what", metavar="ENTITY|KIND|SELECTOR", shell_complete=completing.kinds_or_selectors
)
@click.argument("names", metavar="[NAME...]", nargs=-1)
@click.option("--at", help="Show the state at a time: 10m (ago), 2h, 2026-11-21 18:00 (UTC).")
@click.option("--samples", "series", metavar="SERIES", help="Show a number: temp.inlet.")
@click.option("--last", help="With --samples: how far back to begin: 2h.", metavar="TIME")
@watch_option
@entities_option
@click.pass_context
def get(  # noqa: PLR0913 (what can be shown)
    ctx: click.Context,
    what: str,
    names: tuple[str, ...],
    at: str | None,
    series: str | None,
    last: str | None,
    watch: bool,
    output: str,
) -> None:
    r"""Show one entity, all of a kind, or what SELECTOR matches ('node:* and power=off').

    ENTITY is node:NAME, KIND:NAME@NODE or KIND:NAME. KIND is node, service, job and so on; names
    after it select some of that kind. Entities in the same state share one line.

    \b
    Examples:
      haptera get node rack1n1
      haptera get -o name 'node:* and power=off'
      haptera get service --at 10m
      haptera get --watch 'rack1* and power=off'
      haptera get 'job:*@n3 and state=running'
      haptera get node:n1 --samples temp.inlet --last 2h
    """
    client, what = the_client(ctx), _meant(what, names)
    if last is not None and series is None:
        raise click.UsageError("--last says how much of --samples SERIES is shown")
    if series is not None:
        if watch or at is not None or what == JOB or is_of_jobs(what):
            raise click.UsageError("--samples shows entities as they are: leave out the rest")
        _show_samples(client, what, series, last, output)
    elif what == JOB or is_of_jobs(what):
        _get_jobs(client, what, at, watch, output)
    elif at is not None:
        if watch:
            raise click.UsageError("a past state does not change: leave out --watch or --at")
        _print_past(past(client, _selector(what), at), what, output)
    elif watch:
        events = calls.events(_selector(what))
        keep_showing(client, events, lambda: _show(client, what, output), output)
    else:
        _show(client, what, output)


def _meant(what: str, names: Sequence[str]) -> str:
    """One entity, a kind, or a selector; of a kind, those of these names."""
    if not names:
        return what
    if what not in (*KINDS, JOB):
        raise click.UsageError(f"{what} is not a kind: write KIND NAME..., or a SELECTOR in quotes")
    return " or ".join(f"{what}:{name}" for name in names)


def _selector(what: str) -> str:
    return f"{what}:*" if what in (*KINDS, JOB) else what


def _show(client: Client, what: str, output: str) -> None:
    if what in KINDS:
        found = client.ask(calls.entities(kind=what)).entities
        none = f"there is no {what}: {_MADE_BY.get(what, _DECLARED)}"
        _print_views(found, found, output, none=none)
    elif _ENTITY.fullmatch(what) is not None:
        view = client.ask(calls.entity(what))
        _print_views([view], view, output)
        if Format(output) is Format.WIDE:
            _print_numbers(client, what, output)
    elif what.isalpha():
        # Or a kind that only the parent knows, for its site declares it.
        found = client.ask(calls.entities(what)).entities or _of_kind(client, what)
        if not found:
            raise UnknownNameError(f"there is no kind or node {what!r}", do=nearest(what, KINDS))
        _print_views(found, found, output)
    else:
        found = selected(client, what).entities
        one = found[0] if [view.entity for view in found] == [what] else None
        _print_views(found, found if one is None else one, output)


def _show_samples(client: Client, what: str, series: str, last: str | None, output: str) -> None:
    """A series of one entity; or of many, the last number of each."""
    from haptera.cli.output import samples  # only here: other answers have no numbers

    one = _one(client, what)
    if one is None:
        if last is not None:
            raise click.UsageError("--last shows the numbers of one entity: name one")
        found = client.ask(sample_calls.samples(_selector(what), series=series)).entities
        if Format(output).for_people:
            none = f"no {series} was measured of {what} in the last two minutes"
            samples.print_last(found, series, output, none=none)
        else:
            print_entities([each.entity for each in found], found, output)
        return
    last_s = parse_duration_ms(last or "1h") // 1_000
    step_s = max(1, last_s // samples.BLOCKS_MAX) if Format(output).for_people else None
    view = client.ask(sample_calls.series(one, series, last_s=max(1, last_s), step_s=step_s))
    if Format(output).for_people:
        none = f"no {series} was measured of {one} in {last or '1h'}"
        samples.print_series(view, output, none=none)
    else:
        print_entities([one], view, output)


def _one(client: Client, what: str) -> str | None:
    """The name of the one entity that is meant."""
    if _ENTITY.fullmatch(what) is not None:
        return what
    if _WORD.fullmatch(what) is None or what in KINDS:
        return None
    return client.ask(calls.entity(f"node:{what}")).entity


def _print_numbers(client: Client, entity: str, output: str) -> None:
    """The last number of each series of an entity, if there are any."""
    from haptera.cli.output import samples  # only here: other answers have no numbers

    with suppress(UnknownNameError):  # of a parent of an earlier version
        for one in client.ask(sample_calls.samples(entity)).entities:
            samples.print_all_last(one, output)


def _of_kind(client: Client, name: str) -> list[EntityView]:
    try:
        return client.ask(calls.entities(kind=name)).entities
    except RefusedError:
        return []


def _get_jobs(client: Client, what: str, at: str | None, watch: bool, output: str) -> None:
    if at is not None:
        raise click.UsageError("how jobs were is not kept: leave out --at")
    if watch:
        only_tables(output)
        call = calls.jobs(select=_selector(what), limit=JOBS_MAX)
        none = f"there is no {what} now"
        keep_asking(client, call, lambda answer: print_jobs(answer.jobs, output, none=none))
        return
    every = calls.jobs(limit=JOBS_MAX)
    found = client.ask(every).jobs if what == JOB else selected_jobs(client, what)
    if Format(output).for_people:
        print_jobs(found, output, none=f"there is no {what}: {_MADE_BY[JOB]}")
    else:
        names = [f"job:{one.id}" for one in found]
        one = found[0] if names == [what] else None
        print_entities(names, found if one is None else one, output)


def _print_past(answer: Past, what: str, output: str) -> None:
    views = answer.entities
    if not Format(output).for_people:
        print_entities([view.entity for view in views], views, output)
        return
    at = utc_text_s(int(answer.at_s))
    if not views:
        raise HapteraError(
            f"there was no {what} at {at}",
            do="see what changed: haptera history",
            code=Code.SELECTS_NOTHING,
        )
    say(f"as it was at {at}")
    print_alike(_THEN, map(_told, views), output)


def _told(view: PastView) -> ToldEntity:
    """One entity as it was: where it stood, what was known and wanted, and why it stood so."""
    names = [name for name in view.desired if name in view.observed] or list(view.observed)
    known = " ".join(_then(view, name) for name in names)
    more = printable(known or "-"), printable(view.why or "")
    return ToldEntity(view.entity, view.condition or "-", None, more)


def _then(view: PastView, name: str) -> str:
    observed, wanted = view.observed[name], view.desired.get(name)
    is_so = wanted is None or as_read(view.entity.partition(":")[0], name, wanted) == observed
    wish = "" if is_so else f"→{wanted}"
    return f"{name}={observed}{wish}"


def _print_views(
    views: Sequence[EntityView], data: object, output: str, *, none: str | None = None
) -> None:
    if not Format(output).for_people:
        print_entities([view.entity for view in views], data, output)
        return
    told = _more if Format(output) is Format.WIDE else _values
    print_alike(
        (*_NOW, *(_MORE if Format(output) is Format.WIDE else ())),
        (
            ToldEntity(one.entity, standing(one.condition, one.frozen), one.since_ms, told(one))
            for one in views
        ),
        output,
        none=none,
    )


def _values(view: EntityView) -> tuple[str, ...]:
    return (values(view),)


def _more(view: EntityView) -> tuple[str, ...]:
    """As `-o wide` tells it."""
    attributes = " ".join(f"{name}={value}" for name, value in view.attributes.items())
    notes = "; ".join(one.note for one in view.observed.values() if one.note is not None)
    reason = view.why or view.frozen or notes or "-"
    return values(view), printable(attributes or "-"), printable(reason)
