"""`haptera module list`: the modules and kinds that are installed here, and whose they are."""

import click

import haptera
from haptera.cli.main import OK, REFUSED
from haptera.cli.output.printing import Format, names_option, print_error, print_names
from haptera.cli.output.tables import print_table
from haptera.cli.verb import answers, unwatched
from haptera.kinds import KINDS
from haptera.kinds.brought import KINDS_GROUP, MODULES_GROUP, Brought, brought, check_kind, the_one
from haptera.kinds.extensions import BUNDLED as EXTENSIONS
from haptera.kinds.extensions import EXTENSIONS_GROUP, check_extension
from haptera.model.errors import DeclarationError, HapteraError, InputError
from haptera.modules import BUNDLED


@click.command("list")
@answers(list[Brought])
@unwatched("it asks no parent; `haptera get --watch module` shows running modules")
@names_option
def list_modules(output: str) -> int:
    r"""List the modules and kinds that a site file on this machine can use.

    They come with haptera, or with packages that declare entry points of the groups haptera.modules
    and haptera.kinds. No parent is asked.

    \b
    Examples:
      haptera module list
      haptera module list -o json

    Exit codes: 0 all are in order, 1 a package brings what cannot be used, 2 wrong usage.
    """
    found, wrong = _bundled(), dict[str, HapteraError]()
    for group in (MODULES_GROUP, KINDS_GROUP, EXTENSIONS_GROUP):
        for some in brought(group).values():
            try:
                found.append(_usable(the_one(some)))
            except HapteraError as error:
                wrong[str(error)] = error
    if Format(output).for_people:
        print_table(("WHAT", "NAME", "PACKAGE", "PLACE"), [_row(one) for one in found], output)
    else:
        modules = [one.name for one in found if one.group == MODULES_GROUP]
        print_names(modules, found, output)
    if wrong:
        print_error(InputError([*wrong.values()]))
    return REFUSED if wrong else OK


def _bundled() -> list[Brought]:
    own = ("haptera", haptera.__version__)
    modules = [Brought(MODULES_GROUP, name, place, *own) for name, place in BUNDLED.items()]
    kinds = [Brought(KINDS_GROUP, name, "", *own) for name in KINDS.bundled]
    extensions = [Brought(EXTENSIONS_GROUP, one.name, "", *own) for one in EXTENSIONS]
    return [*modules, *kinds, *extensions]


def _usable(one: Brought) -> Brought:
    if one.group == MODULES_GROUP and one.name in BUNDLED:
        raise DeclarationError(
            f"module {one.name} comes with haptera: that of {one} is not used",
            where=f"entry points {one.group}",
            do="give it another name",
        )
    if one.group == KINDS_GROUP:
        check_kind(one, KINDS.bundled)
    if one.group == EXTENSIONS_GROUP:
        check_extension(one)
    return one


def _row(one: Brought) -> tuple[str, ...]:
    what = one.group.removeprefix("haptera.")[:-1]
    return what, one.name, f"{one.package} {one.version}", one.place
