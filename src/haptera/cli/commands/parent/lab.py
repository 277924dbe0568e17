"""`haptera lab`: a virtual cluster on this machine."""

import select
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from haptera.cli.commands.parent.serve import radius_option
from haptera.cli.input.directory import dir_option
from haptera.cli.input.naming import NodeName
from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched
from haptera.model.walltime import parse_duration_ms

# In a lab there is nothing to be afraid for.
EVERYTHING_PERCENT: Final = 100
FAULTS: Final = ("cable", "bmc", "reading", "machine", "pin", "dhcp", "dhcp2")
_SITE = click.Path(path_type=Path)


@click.group(invoke_without_command=True)
@unwatched("it already shows its cluster until it is stopped: omit the option")
@dir_option
@click.option("--site", type=_SITE, help="The site file, or a folder of site files.")
@click.option(
    "--vms",
    "machines",
    metavar="N",
    type=click.IntRange(1, 16),
    help="Instead of a site: N virtual machines behind BMCs, booted by network; needs root.",
)
@click.option("--uefi", is_flag=True, help="Give the virtual machines UEFI, not a BIOS.")
@click.option("--bmc", type=click.Choice(["ipmi", "redfish"]), help="What the BMCs speak: ipmi.")
@click.option("--once", is_flag=True, help="Run the check beside the site file, then exit.")
@radius_option(EVERYTHING_PERCENT)
def lab(
    directory: Path,
    site: Path | None,
    machines: int | None,
    uefi: bool,
    bmc: str | None,
    once: bool,
    radius_percent: int,
) -> int | None:
    r"""Run a virtual cluster on this machine, until Ctrl-C.

    It has a parent, and a process tree or a virtual machine for each node.

    \b
    Examples:
      haptera lab --site examples/quickstart/site.yaml
      haptera lab --dir /tmp/lab --site examples/quickstart/site.yaml --once
      haptera lab --dir /tmp/rack --vms 2 --uefi --bmc redfish
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is not None:
        if any(
            ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ctx.params
        ):
            raise click.UsageError("Options of `lab` start a lab; those of `break` come after it.")
        return None
    from haptera.cli import lab as cluster
    from haptera.lab.machine_bmc import Language

    if (site is None) is (machines is None):
        raise click.UsageError("Name a --site, or how many --vms.")
    if uefi and machines is None:
        raise click.UsageError("--uefi is for --vms; in a site: lab.uefi.")
    if bmc is not None and machines is None:
        raise click.UsageError("--bmc is for --vms; in a site: a node's platform.")
    if machines is not None:
        language = Language(bmc or "ipmi")
        site = cluster.site_of_machines(directory, machines, language, uefi=uefi)
    assert site is not None
    return cluster.run(directory=directory, site=site, once=once, radius_percent=radius_percent)


@lab.command("break")
@unwatched("it injects a fault: watch what follows with watch or why")
@click.argument("what", type=click.Choice(FAULTS))
@click.argument("node", type=NodeName(), required=False)
@click.option("--for", "duration", metavar="TIME", help="Mend it after this time: 60s, 5m.")
@click.option("--mend", is_flag=True, help="Mend what is broken.")
@dir_option
def break_(
    what: str, node: str | None, duration: str | None, directory: Path, *, mend: bool
) -> None:
    r"""Inject a fault into a lab with virtual machines, from another terminal.

    `cable` takes the link of a machine's network card away, `bmc` suspends the process of a BMC,
    `reading` has a BMC report that its machine is on, also when it is off, `pin` has a Redfish BMC
    show another certificate than before, and `machine` kills a machine. Of the whole lab, `dhcp`
    corrupts what the parent's DHCP server sends, and with `dhcp2` machines take the offers of a
    second DHCP server.

    \b
    Examples:
      haptera lab break machine n1
      haptera lab break cable n1 --for 60s
      haptera lab break bmc n1 --dir /tmp/rack
      haptera lab break dhcp --mend
    """
    from haptera.lab.breaking import LabFault, Rack
    from haptera.lab.layout import Places

    fault = LabFault(what)
    if fault.of_all is (node is not None):
        raise click.UsageError("Name a machine, except for dhcp and dhcp2: those are of all.")
    if fault is LabFault.MACHINE and (mend or duration is not None):
        raise click.UsageError("Its cluster switches a machine on again: no --for, no --mend.")
    if mend and duration is not None:
        raise click.UsageError("Either --for or --mend.")
    for_ms = None if duration is None else parse_duration_ms(duration)
    rack = Rack(Places(directory.resolve()))
    named = what if node is None else f"{what} of {node}"
    if not mend:
        rack.inject(fault, node)
        say(f"{named}: broken")
        if for_ms is None:
            return
    try:
        select.select((), (), (), (for_ms or 0) / 1_000)
    finally:
        rack.mend(fault, node)
    say(f"{named}: mended")
