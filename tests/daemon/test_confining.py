"""What each module of a daemon gets, by what it declares."""

import os

from haptera.daemon.confining import confinements, grounds_of_agent, grounds_of_parent
from haptera.daemon.settings import ParentSettings
from haptera.model.parts import Context, Manifest, Privilege
from haptera.modules import load


def declared(name):
    """Bundled modules as they are, and one of a site's own."""
    mine = Manifest("mine", "1", Context.SELF, (), (), needs=(Privilege.PORTS,), writes=("/srv",))
    return {"mine": mine, "asked": None}.get(name) or load(name).manifest()


def test_a_node_keeps_its_agents_folder_from_modules_and_adds_nothing_else_beside_it(tmp_path):
    home = tmp_path / "run" / "haptera"
    home.mkdir(parents=True)
    confine = confinements(grounds_of_agent(home, ()), declared)
    mine, service, system = confine("mine"), confine("service"), confine("system")
    hidden = (str(home), f"{home}-modules")
    assert mine.hidden == service.hidden == hidden
    assert (mine.folder, mine.shared) == (f"{home}-modules/mine", ())
    assert (mine.needs, mine.writes, mine.hosts) == ((Privilege.PORTS,), ("/srv",), False)
    # What runs people's programs shares what is its own of the agent's folder, and has its user.
    assert service.shared == (str(home / "services"), str(home / "jobs"))
    assert (service.uid, service.hosts, service.writes) == (None, True, ("/",))
    assert (system.uid, system.needs, system.hosts) == (None, (Privilege.MOUNTS,), False)
    assert not {*os.listdir(tmp_path / "run")} - {"haptera", "haptera-modules"}


def test_a_parent_keeps_the_keys_of_its_secrets_from_modules(tmp_path, monkeypatch):
    home = tmp_path / ".haptera" / "parent"
    home.mkdir(parents=True)
    settings = ParentSettings(str(home), "127.0.0.1", str(tmp_path / "client.json"), "c")
    monkeypatch.setenv("HAPTERA_SECRETS_KEY", "/etc/haptera/keys")
    hidden = confinements(grounds_of_parent(settings), declared)("labnode").hidden
    assert hidden == (str(home), settings.client, f"{home.parent}/modules", "/etc/haptera/keys")


def test_who_is_only_asked_what_it_is_has_the_least(tmp_path):
    home = tmp_path / "run" / "haptera"
    home.mkdir(parents=True)
    asked = confinements(grounds_of_agent(home, ()), lambda _: None)("mine")
    assert (asked.needs, asked.writes, asked.shared, asked.hosts) == ((), (), (), False)
