"""Which minOS a machine runs, and the chain that brings it to another one."""

import asyncio
from pathlib import Path

from haptera.core.modules.catalog import Catalog
from haptera.core.state.table import EntityTable
from haptera.kinds import KINDS
from haptera.model.answers.plan import PlanGroup
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.model.facts import Fact, Method
from haptera.modules import load, minos, netboot
from haptera.modules.netboot.offers import Offers
from haptera.modules.netboot.servers import Booting
from haptera.sdk import Boot, Target
from tests.core.scenario import row_of
from tests.core.test_preview import previewed

NODE = node_id("n1")
ATTRIBUTES = {"platform": "ipmi", "boot_from": "network"}
CATALOG = Catalog(KINDS, [load(one).manifest() for one in ("ipmi", "jobs", "minos", "netboot")])
RUNS = {"power": "on", "agent": "up", "busy": "free", "netboot": "closed"}


def to_another(*, is_there: bool, power: str = "on") -> PlanGroup:
    """What would come of a machine that runs one minOS, were another one desired of it."""
    table = EntityTable(KINDS)
    table.apply(Declare(NODE, ATTRIBUTES, "site"), 1)
    row = row_of(table, NODE)
    wanted = {"power": power, "minos": "new"} | ({"agent": "up"} if power == "on" else {})
    for name, value in wanted.items():
        table.apply(SetDesired(NODE, name, value, "site"), 1)
    seen = {**RUNS, "bootable": row.digest("bootable") if is_there else "stale"}
    table.apply(SetDesired(NODE, "minos", "old", "site"), 1)
    for name, value in {**seen, "booted": row.digest("booted")}.items():
        row.belief.known[name] = Fact(value, "m", Method.READ, 1, 0)
    change = SetDesired(NODE, "minos", "new", "user:a")
    (group,) = previewed(table, change, catalog=CATALOG).groups
    return group


def test_a_machine_is_booted_anew_where_another_minos_is_desired() -> None:
    assert [one.part for one in to_another(is_there=True).chain] == [
        *("ipmi.switch_off", "netboot.offer", "ipmi.boot", "sync.hear", "minos.look_booted")
    ]


def test_a_machine_is_left_as_it_is_where_the_desired_minos_is_not_at_its_parent() -> None:
    group = to_another(is_there=False)

    assert (group.condition, group.chain) == (Condition.STUCK, [])
    assert group.why is not None
    assert "bootable is stale, and no step leads there" in group.why


def test_a_machine_that_is_to_be_off_is_only_switched_off() -> None:
    chain = [one.part for one in to_another(is_there=True, power="off").chain]

    assert chain == ["ipmi.switch_off"]


def test_a_machine_that_was_not_booted_by_name_runs_no_minos_of_a_name() -> None:
    """As this one, which no boot script of haptera's has started."""
    unnamed = Target(NODE, digest="of no name")
    named = Target(NODE, values={"minos": "new"}, digest="of new")

    assert asyncio.run(minos.look_booted(unnamed)) == "of no name"
    assert asyncio.run(minos.look_booted(named)) == "stale"
    assert named.take_note() == "one without a name"


def test_boot_files_are_looked_for_where_the_desired_minos_has_them(tmp_path: Path) -> None:
    settings = netboot.module.settings({"interface": "br0", "address": "10.9.0.1/24"})
    target = Target(
        NODE, values={"minos": "new"}, digest="of new", run_dir=tmp_path, settings=settings
    )
    one = Booting(Offers(), target)

    assert asyncio.run(netboot.look_bootable(one)) == "stale"
    assert str(target.take_note()).endswith("/minos/new/kernel")
    (tmp_path / "minos" / "new").mkdir(parents=True)
    for name in ("kernel", "initramfs"):
        (tmp_path / "minos" / "new" / name).touch()
    assert asyncio.run(netboot.look_bootable(one)) == "of new"


def test_a_boot_is_offered_for_nine_tenths_of_the_time_for_which_its_token_is_good(
    tmp_path: Path,
) -> None:
    """The rest is for the agent to enrol; a boot that takes longer by policy is offered longer."""
    folder = tmp_path / "minos"
    folder.mkdir()
    for name in ("kernel", "initramfs", "undionly.kpxe", "snponly.efi", "ipxe.pxe", "ipxe.efi"):
        (folder / name).touch()
    settings = netboot.module.settings(
        {"interface": "br0", "address": "10.9.0.1/24", "loaders": str(folder)}
    )

    async def offered_for_s(good_for_s: float) -> float:
        boot = Boot("token", "ca", "10.9.0.1:4271", good_for_s)
        attributes = {"mac": "52:54:00:00:00:01", "address": "10.9.0.11"}
        target = Target(NODE, attributes, boot=boot, run_dir=tmp_path, settings=settings)
        Booting(offers := Offers(), target).offer()
        one = offers.of(NODE.name)
        assert one is not None
        return one.ends_at - asyncio.get_running_loop().time()

    assert round(asyncio.run(offered_for_s(600.0))) == 540
    assert round(asyncio.run(offered_for_s(3_000.0))) == 2_700
