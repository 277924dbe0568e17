"""`haptera import`: what other tools know of a cluster, written as a site file."""

import gc
from collections.abc import Callable, Sequence
from typing import Any, Final

import click
import msgspec

from haptera.cli.main import OK, REFUSED
from haptera.cli.output.printing import Format, entities_option, print_entities, say
from haptera.cli.output.words import printable
from haptera.cli.verb import answers, unwatched
from haptera.kinds import node
from haptera.model.declared.desired_check import nearest
from haptera.model.entity import check_name, node_id
from haptera.model.errors import Code, DuplicateError, HapteraError, ParseError, UnknownNameError
from haptera.selectors.nodeset import fold
from haptera.site.imports.ansible import read_ansible
from haptera.site.imports.clustershell import read_clustershell
from haptera.site.imports.found import FoundSite
from haptera.site.imports.layercake import read_layercake
from haptera.site.imports.netbox import read_netbox
from haptera.site.imports.remarks import Remark, RemarkSort, is_secret
from haptera.site.imports.site_text import CLUSTER, site_text
from haptera.site.imports.source import read_group_files, read_source, read_sources
from haptera.site.imports.warewulf import read_warewulf

COLOURS: Final = {
    RemarkSort.CONFLICT: "red",
    RemarkSort.TWICE: "yellow",
    RemarkSort.SECRET: "yellow",
}

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class RemarkView(msgspec.Struct, frozen=True):
    """One remark of an import: its nodes, the place in the source, what to do."""

    sort: RemarkSort
    what: str
    nodes: str | None
    where: list[str]
    do: str | None


class Imported(msgspec.Struct, frozen=True):
    """The text of a site file, how many nodes and groups are in it, and what is not."""

    site: str
    nodes: int
    groups: int
    remarks: list[RemarkView]


@click.group("import")
@click.pass_context
def import_from(ctx: click.Context) -> None:
    """Convert the inventory of another tool to a site file.

    The site goes to standard output; what could not be converted is reported on standard error. No
    parent is asked. Without --manage the site desires nothing: once applied, haptera observes the
    nodes and changes nothing.
    """
    # Trees of many pieces, and no cycle among them: looking for some takes longer than the rest.
    if gc.isenabled():
        gc.disable()
        ctx.call_on_close(gc.enable)


def _options(manage: str) -> _Decorator:
    """The options of all imports; `manage` says what is desired then."""

    def added(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            entities_option,
            click.option("--strict", is_flag=True, help="Exit with 1 if anything is reported."),
            click.option("--manage", is_flag=True, help=manage),
            click.option(
                "--cluster", default=CLUSTER, show_default=True, help="The cluster's name."
            ),
        ):
            command = option(command)
        return command

    return added


def _attribute_option(of: str) -> _Decorator:
    return click.option(
        "--attribute",
        "attributes",
        multiple=True,
        metavar=f"NAME={of}",
        help=f"Take the attribute NAME of nodes (rack, bmc…) from this {of.lower()}.",
    )


_AGENTS: Final = "Make agent=up the desired state of each node."


@import_from.command("ansible")
@answers(Imported)
@unwatched("it reads local files, for which there are no events: run it again")
@click.argument("file")
@_attribute_option("VARIABLE")
@_options(_AGENTS)
def ansible(file: str, attributes: tuple[str, ...], **options: Any) -> int:
    r"""Import the hosts and groups of an Ansible inventory.

    FILE is what `ansible-inventory --list` writes, or - for standard input. A host's ansible_host
    is its address.

    \b
    Examples:
      ansible-inventory -i hosts.ini --list | haptera import ansible - > site.yaml
      haptera import ansible --attribute rack=rack_id inventory.json > site.yaml
    """
    return _tell(read_ansible(read_source(file), _read_attributes(attributes)), **options)


@import_from.command("clustershell")
@answers(Imported)
@unwatched("it reads local files, for which there are no events: run it again")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@_attribute_option("SOURCE")
@click.option(
    "--source", metavar="SOURCE", help="The default source, whose groups keep their names."
)
@_options(_AGENTS)
def clustershell(
    files: tuple[str, ...], attributes: tuple[str, ...], source: str | None, **options: Any
) -> int:
    r"""Import the nodes and groups of ClusterShell.

    FILE is a groups.conf, a group file (.yaml, or flat), or a folder of these, such as
    /etc/clustershell. Commands in groups.conf are not run.

    \b
    Examples:
      haptera import clustershell /etc/clustershell > site.yaml
      haptera import clustershell --attribute rack=racks groups.d/cluster.yaml > site.yaml
    """
    read = _read_attributes(attributes)
    return _tell(read_clustershell(read_group_files(files), read, source), **options)


@import_from.command("layercake")
@answers(Imported)
@unwatched("it reads local files, for which there are no events: run it again")
@click.argument("file")
@_options("Take the desired state from the file: power from physState, agent from runState.")
def layercake(file: str, *, manage: bool, **options: Any) -> int:
    r"""Import the nodes of a state file of Kraken's Layercake.

    FILE is what its -state names, or - for standard input.

    \b
    Examples:
      haptera import layercake /etc/kraken/layercake/state.json > site.yaml
      haptera import layercake --manage state.json | haptera plan -
    """
    return _tell(read_layercake(read_source(file), manage=manage), manage=False, **options)


@import_from.command("netbox")
@answers(Imported)
@unwatched("it reads local files, for which there are no events: run it again")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@_attribute_option("FIELD")
@_options(_AGENTS)
def netbox(files: tuple[str, ...], attributes: tuple[str, ...], **options: Any) -> int:
    r"""Import the devices of NetBox, with their roles and tags as groups.

    FILE is a page of its API's /api/dcim/devices/; all pages are needed, as `next` names them.

    \b
    Examples:
      haptera import netbox page1.json page2.json > site.yaml
      haptera import netbox --attribute jobs=batch devices.json > site.yaml
    """
    return _tell(read_netbox(read_sources(files), _read_attributes(attributes)), **options)


@import_from.command("warewulf")
@answers(Imported)
@unwatched("it reads local files, for which there are no events: run it again")
@click.argument("file")
@_attribute_option("TAG")
@_options(_AGENTS)
def warewulf(file: str, attributes: tuple[str, ...], **options: Any) -> int:
    r"""Import the nodes and profiles of Warewulf 4.

    FILE is its nodes.conf, or - for standard input. Profiles are there by name, for you to fill.

    \b
    Examples:
      haptera import warewulf /etc/warewulf/nodes.conf > site.yaml
      haptera import warewulf --attribute rack=rack nodes.conf > site.yaml
    """
    return _tell(read_warewulf(read_source(file), _read_attributes(attributes)), **options)


def _read_attributes(texts: Sequence[str]) -> dict[str, str]:
    """Which attribute is of what.

    Raises:
        HapteraError: a text says none, or names a secret.
    """
    names = [one.name for one in node.kind.attributes if one is not node.groups]
    found: dict[str, str] = {}
    for text in texts:
        name, equals, source = text.partition("=")
        where = f"--attribute {text}"
        if not equals or not source:
            raise HapteraError(
                "its source is missing", where=where, do="write NAME=WHERE", code=Code.MISSING
            )
        if name not in names:
            what = f"no attribute {name!r} can be taken"
            raise UnknownNameError(what, where=where, do=nearest(name, names))
        if name in found:
            raise DuplicateError(f"{name} is there twice", where=where, do="say it once")
        if is_secret(source):
            what = "attributes are seen by all, and this looks like a secret"
            raise HapteraError(what, where=where, do="keep it with `haptera secret set NAME`")
        found[name] = source
    return found


def _tell(found: FoundSite, *, cluster: str, manage: bool, strict: bool, output: str) -> int:
    """Write the site and the remarks; the exit code.

    Raises:
        HapteraError: there is no node; applied, such a site would take away all that there are.
    """
    check_name(cluster)
    if not found.nodes:
        for one in found.remarks:
            _print_remark(one)
        raise ParseError("no node was found in it", do="check that it is the right file")
    if manage:
        found.desire_agents()
    text = site_text(found, cluster)
    if not Format(output).for_people:
        remarks = [_view(one) for one in found.remarks]
        told = Imported(text, len(found.nodes), len(found.groups), remarks)
        print_entities([str(node_id(name)) for name in found.nodes], told, output)
    else:
        say(text, nl=False)
        for one in found.remarks:
            _print_remark(one)
        counted = f"{_count(found.nodes, 'node')}, {_count(found.groups, 'group')}"
        say(f"{counted}; {_count(found.remarks, 'remark')}", err=True)
    return REFUSED if strict and found.remarks else OK


def _count(some: Any, what: str) -> str:
    return f"{len(some)} {what}{'' if len(some) == 1 else 's'}"


def _view(one: Remark) -> RemarkView:
    nodes = fold(one.nodes) if one.nodes else None
    return RemarkView(one.sort, one.what, nodes, [str(place) for place in one.places], one.do)


def _print_remark(one: Remark) -> None:
    """One remark with its first place: of many, one is where to look."""
    nodes = f", of {fold(one.nodes)}" if one.nodes else ""
    say(printable(f"{one.sort}: {one.what}{nodes}"), err=True, fg=COLOURS.get(one.sort))
    more = len(one.places) - 1
    others = f" and {more} more place{'s'[: more - 1]}" if more else ""
    say(f"  {printable(str(one.places[0]))}{others}", err=True)
    if one.do is not None:
        say(f"  {printable(one.do)}", err=True)
