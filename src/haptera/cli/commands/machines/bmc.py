"""`haptera bmc check`: what the BMC of a node says of itself, before somebody trusts it."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final, Protocol

import click
import msgspec

from haptera.cli.input import completing
from haptera.cli.input.directory import dir_option
from haptera.cli.main import OK, REFUSED, the_client
from haptera.cli.output.printing import say
from haptera.cli.output.tables import print_table
from haptera.cli.verb import unwatched
from haptera.client import calls
from haptera.kinds import module, node
from haptera.model.answers.views import EntityView
from haptera.model.declared.secrets import filled, references, resolved
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.modules import load
from haptera.modules.effects import DeviceError
from haptera.modules.survey import BmcSurvey
from haptera.runtime.processes.secrets import SecretStore
from haptera.sdk import Refused, Target

LANGUAGES: Final = ("ipmi", "redfish")


class SurveyedBmc(Protocol):
    """A BMC that says what it is."""

    async def survey(self) -> BmcSurvey: ...


@click.group()
def bmc() -> None:
    """Ask the BMC of a node what it is, from the parent's machine."""


@bmc.command("check")
@unwatched("it runs once")
@click.argument("name", metavar="NODE", shell_complete=completing.entities)
@dir_option
@click.pass_context
def check(ctx: click.Context, name: str, directory: Path) -> int:
    r"""Ask the BMC of NODE what it is, what it offers, and how fast it answers.

    It is asked as the module of its node asks it: with the module's settings and secrets, so this
    runs on the parent's machine, as who may read them. It changes nothing. A BMC whose certificate
    was never pinned shows it first to this command; it is pinned when the module first asks.

    \b
    Examples:
      haptera bmc check rack1n1
      haptera bmc check rack1n1 --dir /srv/cluster
    """
    client = the_client(ctx)
    view = client.ask(calls.entity(f"node:{name.removeprefix('node:')}"))
    language = view.attributes.get(node.platform.name, "")
    if language not in LANGUAGES:
        do = "name a node with platform: ipmi or redfish"
        raise HapteraError(f"{view.entity} is of platform {language or 'none'}", do=do)
    settings = _settings(client.ask(calls.entity(f"module:{language}")), view, directory)
    with tempfile.TemporaryDirectory() as folder:
        _copy_pin(directory, language, view.name, Path(folder))
        made = load(language).settings(settings)
        target = Target(node_id(view.name), view.attributes, settings=made, run_dir=Path(folder))
        try:
            survey = asyncio.run(surveyed(language, target))
        except (DeviceError, Refused) as error:
            say(f"error: {error}", err=True)
            return REFUSED
    print_table(("BMC", view.attributes.get(node.bmc.name, "")), survey.rows(), "table")
    return OK


async def surveyed(language: str, target: Target) -> BmcSurvey:
    """What the BMC says; a session that this opens is ended."""
    if language == "ipmi":
        from haptera.modules.ipmi.bmc import IpmiBmc

        return await IpmiBmc(target).survey()
    from haptera.modules.redfish.bmc import RedfishBmc, end_sessions

    try:
        return await RedfishBmc(target).survey()
    finally:
        await end_sessions()


def _settings(said: EntityView, view: EntityView, directory: Path) -> Any:
    """Those of the module, with the secrets that they name for this node."""
    given = said.desired.get(module.settings.name)
    settings = {} if given is None else msgspec.json.decode(str(given.value))
    store = SecretStore(directory.resolve() / ".haptera" / "parent")
    about = {**view.attributes, "name": view.name, "node": view.name}
    values = {
        one: store.read_at_parent(said.name, filled(one, about)) for one in references(settings)
    }
    return resolved(settings, values)


def _copy_pin(directory: Path, language: str, name: str, folder: Path) -> None:
    """Have the certificate that the module has pinned count here too."""
    pin = directory.resolve() / ".haptera" / "modules" / language / f"{name}.pin"
    if pin.exists():
        shutil.copy(pin, folder / pin.name)
