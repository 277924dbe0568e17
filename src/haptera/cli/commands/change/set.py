"""`haptera set`: what an entity, or many, should be, in one's own name."""

from collections.abc import Mapping, Sequence

import click

from haptera.cli.input import completing
from haptera.cli.input.naming import entity_named
from haptera.cli.input.selected import selected
from haptera.cli.input.terms import WriteTerms, terms_options
from haptera.cli.main import the_client
from haptera.cli.output.plans import print_groups, print_sum
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.output.tables import print_sentence
from haptera.cli.output.words import details, sentence
from haptera.cli.verb import answers, unwatched
from haptera.client import Client, calls
from haptera.model.answers.views import EntityView
from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError, LimitError, ParseError
from haptera.rest.schemas import PATCHES_MAX, Bulk, EntityPatch
from haptera.selectors.selector import fold_entities

entity_argument = click.argument(
    "entity", metavar="ENTITY|SELECTOR", shell_complete=completing.selectors
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would run.")


@click.command("set")
@answers(EntityView, Bulk)
@unwatched("it runs once; `haptera status --watch` shows the result")
@entity_argument
@click.argument(
    "values",
    metavar="NAME=VALUE...",
    nargs=-1,
    shell_complete=completing.values,
)
@click.option("--unset", "drops", metavar="NAME", multiple=True, help="Remove this desired value.")
@dry_run_option
@terms_options
@entities_option
@click.pass_context
def set_values(
    ctx: click.Context,
    entity: str,
    values: tuple[str, ...],
    drops: tuple[str, ...],
    dry_run: bool,
    terms: WriteTerms,
    output: str,
) -> None:
    r"""Set desired values of ENTITY, or of what SELECTOR matches.

    The values belong to you: no site file changes them. Several entities are written together, all
    or none. Values of other owners (the site, a controller) are left alone unless you --take them.
    Values that contradict other desired values are refused, with a command that sets both.

    \b
    Examples:
      haptera set node:n1 power=off --unset agent -m "new fans"
      haptera set service:web@n1 port=8081 run=running --take
      haptera set node:rack1n[1-4] power=off --unset agent --take --dry-run
    """
    if not (values or drops):
        raise click.UsageError("Missing argument 'NAME=VALUE...'.", ctx)
    meant = {**dict.fromkeys(drops), **dict(map(_pair, values))}
    write(ctx, entity, meant, terms, dry_run=dry_run, output=output)


def write(
    ctx: click.Context,
    meant: str,
    values: Mapping[str, str | None],
    terms: WriteTerms,
    *,
    dry_run: bool,
    output: str,
) -> int:
    """Write these values of what is meant, and tell what that starts; at which revision it is."""
    meant = entity_named(meant)
    client, one = the_client(ctx), is_one(meant)
    if one and not dry_run and terms.digest is None:
        view = client.ask(calls.desire(meant, values, take=terms.take, why=terms.why))
        _tell_one(view, output)
        return view.revision
    names = [meant] if one else _meant(client, meant)
    call = calls.patch(
        [EntityPatch(name, {**values}) for name in names],
        all_or_nothing=True,
        dry_run=dry_run,
        take=terms.take,
        digest=terms.digest,
        why=terms.why,
    )
    bulk = client.ask(call)
    if not Format(output).for_people:
        print_entities(names, bulk, output)
    elif dry_run:
        _tell_would(bulk, names)
    else:
        say(f"{_folded(names)} written (revision {bulk.revision})")
        for plan in bulk.plans:
            print_groups(plan)
    return bulk.revision


def is_one(text: str) -> bool:
    """Whether it names an entity, not many: a selector has more in it than a name may have."""
    try:
        parse_entity(text)
    except HapteraError:
        return False
    return True


def _meant(client: Client, selector: str) -> list[str]:
    names = [view.entity for view in selected(client, selector).entities]
    check_writable(selector, names)
    return names


def check_writable(selector: str, names: Sequence[str]) -> None:
    """See that these, which a selector means, can be given values in one write.

    Raises:
        HapteraError: they are of several kinds, or too many.
    """
    kinds = sorted({parse_entity(name).kind for name in names})
    if len(kinds) > 1:
        what = f"{selector!r} matches entities of the kinds {', '.join(kinds)}"
        raise HapteraError(what, do="select one kind, as node:rack1n1 or service:web@rack1*")
    if len(names) > PATCHES_MAX:
        what = f"{selector!r} matches {len(names)} entities, more than {PATCHES_MAX}"
        raise LimitError(what, do="select fewer at once, or use a site file")


def _tell_one(view: EntityView, output: str) -> None:
    if not Format(output).for_people:
        print_entities([view.entity], view, output)
        return
    print_sentence(sentence(view), output)
    for line in details(view):
        print_sentence(line, output, indent="  ")


def _tell_would(bulk: Bulk, names: list[str]) -> None:
    say(f"{_folded(names)} would be written, at revision {bulk.revision}")
    for plan in bulk.plans:
        print_groups(plan)
        print_sum(plan)


def _folded(names: list[str]) -> str:
    return fold_entities(map(parse_entity, names))


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise ParseError(f"{text!r} is not a value", do="write NAME=VALUE, as power=on")
    return name, value
