"""`haptera history`: who changed what, when and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, assert_never

import click

from haptera.cli.input import completing
from haptera.cli.input.selected import selected
from haptera.cli.main import the_client
from haptera.cli.output import frozen
from haptera.cli.output.live.redrawing import keep_showing, watch_option
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.output.tables import print_table
from haptera.cli.output.words import printable
from haptera.cli.verb import answers
from haptera.client import Client, calls
from haptera.model.answers.past import Changed, Deed, Happened, Page, Sort
from haptera.model.entity import parse_entity
from haptera.model.news import News
from haptera.model.walltime import parse_when, utc_text, utc_text_s
from haptera.rest.schemas import Audit
from haptera.runtime import clock
from haptera.selectors.nodeset import fold

_SHOWN: Final = 100
_CHANGED: Final = ("REVISION", "TIME", "WHO", "WHAT", "ON", "CHANGE", "WHY")
_HAPPENED: Final = ("TIME", "WHO", "ENTITY", "WHAT")
_DEEDS: Final = ("REVISION", "TIME", "WHO", "WHAT", "WHY")
# The news of what is desired.
_CHANGES: Final = (News.DESIRED, News.GONE)


@click.command()
@answers(Page, tuple[Page, list[Happened]], Audit)
@click.argument(
    "selector",
    metavar="[ENTITY|SELECTOR]",
    required=False,
    shell_complete=completing.selectors,
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    default=_SHOWN,
    show_default=True,
    help="Show at most this many changes.",
)
@click.option(
    "-a", "--all", "everything", is_flag=True, help="Add readings, conditions and attempts."
)
@click.option("--since", metavar="WHEN", help="Only changes since: 2h (ago), 2026-11-21 18:00.")
@click.option("--who", metavar="NAME", help="Only changes by this user or owner.")
@click.option("--audit", is_flag=True, help="Show requests and who made them, instead of changes.")
@watch_option
@entities_option
@click.pass_context
def history(  # noqa: PLR0913 (an argument for each option)
    ctx: click.Context,
    selector: str | None,
    limit: int,
    since: str | None,
    who: str | None,
    everything: bool,
    audit: bool,
    watch: bool,
    output: str,
) -> None:
    r"""Show changes of the desired state, latest last: who, when, what and why.

    Name an ENTITY or a SELECTOR; without one, all changes are shown. Identical changes on many
    nodes share one line. The number at its start is the revision that `haptera revert` takes. --all
    adds readings, conditions and attempts.

    \b
    Examples:
      haptera history -n 20
      haptera history --since 2h --who user:eve
      haptera history --all rack1n1
      haptera history --watch rack1*
    """
    client, asked = the_client(ctx), _Asked(selector, limit, _since(since), who)
    if asked.narrowed and (everything or audit):
        raise click.UsageError("--since and --who select changes: leave out --all and --audit")
    if watch:
        if audit or everything:
            # What happened is written down a little after it is announced.
            text = "leave out --audit and --all; `haptera watch` shows all events"
            raise click.UsageError(f"--watch shows changes of desired state only: {text}")
        events = calls.events(selector, types=_CHANGES)
        keep_showing(client, events, lambda: _show(client, asked, output), output)
    elif audit:
        _check_audit(selector, output)
        _show_audit(client, limit, output)
    elif everything:
        _show_all(client, selector, limit, output)
    else:
        _show(client, asked, output)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which changes are shown: of what, how many at the most, since when, and whose."""

    selector: str | None
    limit: int
    since_s: int | None
    who: str | None

    @property
    def narrowed(self) -> bool:
        return self.since_s is not None or self.who is not None

    def means(self, one: Changed) -> bool:
        late = self.since_s is None or one.at_s >= self.since_s
        names = {one.who, one.owner, (one.who or one.owner).removeprefix("user:")}
        return late and (self.who is None or self.who in names)

    def found(self, client: Client) -> Page:
        """The latest of them, a page after the other: few of very many may be meant."""
        found, before = list[Changed](), None
        while True:
            page = client.ask(calls.history(self.selector, limit=self.limit, before=before))
            found += filter(self.means, page.changes)
            before = page.before
            early = self.since_s is not None and any(
                one.at_s < self.since_s for one in page.changes
            )
            if len(found) >= self.limit or before is None or early:
                whole = before is None or early
                return Page(found[: self.limit], None if whole else before)


def _since(text: str | None) -> int | None:
    return None if text is None else parse_when(text, clock.wall_s())


def _check_audit(selector: str | None, output: str) -> None:
    if selector is not None:
        raise click.UsageError("--audit shows all requests: leave SELECTOR out")
    if Format(output) is Format.NAME:
        raise click.UsageError("audit records have no names: leave out --audit or -o name")


def _show_audit(client: Client, limit: int, output: str) -> None:
    audit = client.ask(calls.audit(limit=limit))
    _print_rows(_DEEDS, [], audit, [_deed(one) for one in reversed(audit.deeds)], output)


def _show(client: Client, asked: _Asked, output: str) -> None:
    page, limit = asked.found(client), asked.limit
    if asked.selector is not None and not page.changes:
        selected(client, asked.selector)  # What never was has no history.
    names = [one.entity for one in page.changes]
    _print_rows(_CHANGED, names, page, _lines(reversed(page.changes)), output)
    if page.before is not None and Format(output).for_people:
        say(f"older changes are not shown: raise --limit above {limit}", err=True)


def _show_all(client: Client, selector: str | None, limit: int, output: str) -> None:
    page = client.ask(calls.history(selector, limit=limit))
    happened = client.ask(calls.happenings(selector, limit=limit)).happened
    names = [one.entity for one in page.changes]
    # What happened to the parent itself is of no entity.
    names += [one.entity for one in happened if one.entity]
    lines = _all_lines(page.changes, happened)[-limit:]
    _print_rows(_HAPPENED, names, [page, happened], lines, output)


def _print_rows(
    headers: tuple[str, ...],
    names: list[str],
    data: object,
    rows: list[tuple[str, ...]],
    output: str,
) -> None:
    if not Format(output).for_people:
        print_entities(names, data, output)
    elif rows:
        print_table(headers, rows, output)
    else:
        say("no changes")


def _lines(changes: Iterable[Changed]) -> list[tuple[str, ...]]:
    """One for all changes of a write that differ only in the node."""
    alike: dict[tuple[str, ...], list[str]] = {}
    some = [*changes]
    for one in frozen.told_once(some):
        entity = parse_entity(one.entity)
        title = one.entity.partition("@")[0] if entity.kind != "node" else "node"
        key = (
            str(one.revision),
            utc_text(int(one.at_s)),
            one.who or f"for {one.owner}",
            title,
            printable(frozen.words(some, one) or _change(one)),
            "" if one.why is None else printable(one.why),
        )
        alike.setdefault(key, []).append(entity.node or "")
    return [(*key[:4], fold(filter(None, nodes)), *key[4:]) for key, nodes in alike.items()]


def _all_lines(changes: Iterable[Changed], happened: Iterable[Happened]) -> list[tuple[str, ...]]:
    """Each change and happening, in order of time."""
    lines = [(one.at_s, one.who or one.owner, one.entity, _change(one)) for one in changes]
    lines += [(one.at_s, *_happening(one)) for one in happened]
    lines.reverse()  # They come latest first, and those of one moment stay in their order.
    lines.sort(key=lambda one: one[0])
    return [(utc_text_s(int(at_s)), *rest) for at_s, *rest in lines]


def _happening(one: Happened) -> tuple[str, str, str]:
    """Who saw it, of what, and what it was."""
    note = "" if one.note is None else f": {one.note}"
    match one.sort:
        case Sort.SEEN:
            text = f"{one.name} is {one.value or 'not known'}"
            return one.note or "-", one.entity, printable(text)
        case Sort.STANDS:
            return "-", one.entity, printable(f"{one.value}{note}")
        case Sort.TRIED:
            return "-", one.entity, printable(f"{one.name} {one.value}{note}")
        case Sort.GONE:
            return "-", one.entity, "is no longer there"
        case Sort.BEGUN:
            return "-", "parent", "began, with nothing known"
        case Sort.LOST:
            return "-", "history", f"{one.value} events could not be recorded"
        case _:
            assert_never(one.sort)


def _change(one: Changed) -> str:
    if one.name is None:
        attributes = "" if one.after in (None, "{}") else f" {one.after}"
        does = "undeclared" if one.after is None else "declared"
        return printable(does + attributes)
    before = "nothing" if one.before is None else str(one.before)
    after = "nothing" if one.after is None else str(one.after)
    return printable(f"{one.name}: {before} -> {after}")


def _deed(one: Deed) -> tuple[str, ...]:
    revision = "-" if one.revision is None else str(one.revision)
    return revision, utc_text(int(one.at_s)), one.who, printable(one.what), printable(one.why or "")
