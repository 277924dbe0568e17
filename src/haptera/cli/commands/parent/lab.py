"""`haptera lab`: a virtual cluster on this machine."""

from pathlib import Path
from typing import Final

import click

from haptera.cli.commands.parent.serve import dir_option, radius_option

# In a lab there is nothing to be afraid for.
EVERYTHING_PERCENT: Final = 100
_SITE = click.Path(path_type=Path)


@click.command()
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
) -> int:
    r"""Run a virtual cluster on this machine, until Ctrl-C.

    It has a parent, and a process tree or a virtual machine for each node.

    \b
    Examples:
      haptera lab --site examples/quickstart/site.yaml
      haptera lab --dir /tmp/lab --site examples/quickstart/site.yaml --once
      haptera lab --dir /tmp/rack --vms 2 --uefi --bmc redfish
    """
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
