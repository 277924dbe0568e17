"""Secrets where they are kept, and on their way to a module's process, which alone is told them."""

import asyncio
import os
import stat
from base64 import urlsafe_b64encode

import pytest
from cryptography.fernet import Fernet

from haptera.model.declared.secrets import Keeper, parse_reference
from haptera.model.effects import Call, Start, Stop, Work
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.events import Exited, Failed
from haptera.runtime.identity.private import private_directory
from haptera.runtime.processes.secrets import SECRET_BYTES_MAX, SecretStore, Starter
from tests.lab.rig import until


class Processes:
    """What a `Starter` starts and stops."""

    def __init__(self):
        self.done = []

    def start(self, start):
        self.done.append(start)

    def stop(self, stop):
        self.done.append(stop)


BMC = EntityId("module", "bmc", None)
N01 = EntityId("node", "n01", "n01")


def found(kept, text, user=BMC):
    return kept.read(user, parse_reference(text))


def test_a_kept_secret_is_for_its_owner_only_and_given_without_its_line_end(tmp_path):
    kept = SecretStore(tmp_path)
    assert kept.names() == []
    kept.put("bmc", b"hunter2\n")
    kept.put("bmc", b"hunter3\n")
    kept.put("ldap", "pässwörd".encode())

    assert kept.names() == ["bmc", "ldap"]
    assert (found(kept, "bmc"), found(kept, "ldap")) == ("hunter3", "pässwörd")
    for path in (tmp_path / "secrets", tmp_path / "secrets" / "bmc"):
        assert path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) == 0
    kept.remove("bmc")
    assert kept.names() == ["ldap"]


def test_what_cannot_be_kept_is_told(tmp_path):
    kept = SecretStore(tmp_path)
    for name, value in (("a/b/c", b"x"), ("a/..", b"x"), ("a", b""), ("a", b"\n"), ("a", b"\xff"),
                        ("a", b"x" * (SECRET_BYTES_MAX + 1))):  # fmt: skip
        with pytest.raises(HapteraError):
            kept.put(name, value)
    with pytest.raises(HapteraError, match="there is no secret 'a'"):
        kept.remove("a")
    assert kept.names() == []


def test_what_this_machine_keeps_is_read_unless_others_can(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTERA_SECRET_BMC", "from the environment")
    monkeypatch.setenv("HAPTERA_SECRET_FILES", str(tmp_path))
    (tmp_path / "key").write_text("from a file\n")
    (tmp_path / "key").chmod(0o600)
    kept = SecretStore(tmp_path)
    assert found(kept, "env:HAPTERA_SECRET_BMC") == "from the environment"
    assert found(kept, f"file:{tmp_path}/key") == "from a file"

    (tmp_path / "key").chmod(0o640)
    for text, what in (
        (f"file:{tmp_path}/key", "others can read its file"),
        (f"file:{tmp_path}/none", "No such file"),
        ("env:HAPTERA_SECRET_NONE", "it is not set"),
        ("bmc", "secret bmc: it is not set: haptera secret set bmc"),
    ):
        with pytest.raises(HapteraError, match=what) as raised:
            found(kept, text)
        assert "from a file" not in str(raised.value)


def test_a_secret_that_is_no_file_keeps_nobody_waiting(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTERA_SECRET_FILES", str(tmp_path))
    kept = SecretStore(tmp_path)
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "secrets").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "secrets/bmc", 0o600)
    for text in (f"file:{tmp_path}/fifo", "bmc", f"file:{tmp_path}/secrets"):
        with pytest.raises(HapteraError, match=r"no plain file|Is a directory"):
            found(kept, text)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_a_secret_that_belongs_to_somebody_else_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTERA_SECRET_FILES", str(tmp_path))
    (tmp_path / "key").write_text("theirs\n")
    (tmp_path / "key").chmod(0o600)
    os.chown(tmp_path / "key", 65_534, 65_534)
    with pytest.raises(HapteraError, match="belongs to user 65534; give it to root") as refused:
        found(SecretStore(tmp_path), f"file:{tmp_path}/key")
    assert "theirs" not in str(refused.value)


def test_a_file_elsewhere_is_not_read_whoever_names_it(tmp_path, monkeypatch):
    folder = tmp_path / "secrets"
    folder.mkdir()
    (tmp_path / "ca.key").write_text("hunter2")
    (tmp_path / "ca.key").chmod(0o600)
    (folder / "link").symlink_to(tmp_path / "ca.key")
    kept = SecretStore(tmp_path)
    for variable in (None, str(folder)):
        if variable is not None:
            monkeypatch.setenv("HAPTERA_SECRET_FILES", variable)
        for path in (tmp_path / "ca.key", folder / ".." / "ca.key", folder / "link"):
            with pytest.raises(HapteraError, match="it is not below /") as refused:
                found(kept, f"file:{path}")
            assert "hunter2" not in str(refused.value)


def test_a_variable_that_was_not_meant_for_modules_is_not_read(tmp_path, monkeypatch):
    for name in ("AWS_SECRET_ACCESS_KEY", "haptera_secret_bmc", "HAPTERA_SECRETS"):
        monkeypatch.setenv(name, "hunter2")
        with pytest.raises(HapteraError, match="does not begin with HAPTERA_SECRET_") as refused:
            found(SecretStore(tmp_path), f"env:{name}")
        assert "hunter2" not in str(refused.value)


def test_only_the_modules_that_may_name_a_secret_have_it(tmp_path):
    kept = SecretStore(tmp_path)
    kept.put("key", b"hunter2")
    assert (kept.users("key"), found(kept, "key")) == (None, "hunter2")

    kept.allow("key", ["bmc", "module:service@rack1n*"])
    assert kept.users("key") == ["module:bmc", "module:service@rack1n*"]
    for name, node, may in (
        ("bmc", None, True),
        ("service", "rack1n4", True),
        ("service", "rack2n4", False),
        ("labnode", None, False),
    ):
        user = EntityId("module", name, node)
        if may:
            assert found(kept, "key", user) == "hunter2"
        else:
            with pytest.raises(HapteraError, match=f"secret key: {user} may not use it"):
                found(kept, "key", user)

    kept.put("key", b"hunter3")
    assert kept.users("key") == ["module:bmc", "module:service@rack1n*"]
    for text in ("power=off", "", "a b"):
        with pytest.raises(HapteraError):
            kept.allow("key", [text])
    kept.remove("key")
    assert kept.users("key") is None


def starting(find, *orders):
    """What comes of these orders: what was done, and what was told."""
    processes, told = Processes(), []

    async def whole():
        starter = Starter(processes, find, told.extend)
        for order in orders:
            starter.stop(order) if isinstance(order, Stop) else starter.start(order)
        await until(lambda: not starter.waiting)
        await asyncio.sleep(0)
        starter.close()

    asyncio.run(whole())
    return processes.done, told


NAMED = '{"user":"eve","keys":[{"secret":"bmc"},{"secret":"env:K"}]}'


async def secret(_module, reference):
    await asyncio.sleep(0)
    return f"the {reference}"


def test_a_module_is_started_with_the_values_of_what_its_settings_name():
    plain = Start("jobs", 1, '{"a":1}')
    done, told = starting(secret, Start("bmc", 2, NAMED), plain)

    assert (done, told) == (
        [plain, Start("bmc", 2, '{"user":"eve","keys":["the bmc","the env:K"]}')],
        [],
    )


def test_a_secret_that_cannot_be_had_is_why_a_module_was_not_started():
    async def lost(_module, reference):
        if reference.keeper is Keeper.ENVIRONMENT:
            raise HapteraError(f"secret {reference}: it is not set for the daemon")
        return "known"

    assert starting(lost, Start("bmc", 2, NAMED)) == (
        [],
        [Exited("bmc", "was not started: secret env:K: it is not set for the daemon", 2)],
    )


def test_a_process_that_is_stopped_before_its_secrets_are_found_never_starts():
    async def never(reference):
        await asyncio.Event().wait()

    done, told = starting(never, Start("bmc", 2, NAMED), Stop("bmc", 2), Stop("bmc", 1))

    assert (done, told) == ([Stop("bmc", 1)], [Exited("bmc", "it was not started", 2)])


async def test_each_entity_has_the_secret_that_settings_name_with_holes(tmp_path):
    kept, processes, delivered = SecretStore(tmp_path), Calls(), []
    kept.put("bmc/n01", b"hunter2")
    kept.put("all", b"hunter3")
    settings = '{"password":{"secret":"bmc/{name}"},"key":{"secret":"all"},"port":1}'

    starter = Starter(processes, kept.find_at_parent, delivered.extend, kept.read_at_parent)
    starter.start(Start("bmc", 1, settings))
    await processes.ready.wait()
    for number, name in enumerate(("n01", "n02", "a:b")):
        entity = EntityId("node", name, name)
        starter.call(Call(number, Work.LOOK, "bmc", "look", entity, {}, {}, "", deadline_at=None))
    kept.put("bmc/n01", b"hunter4")
    starter.call(Call(9, Work.LOOK, "bmc", "look", N01, {}, {}, "", deadline_at=None))
    assert processes.started == ['{"password":"","key":"hunter3","port":1}']
    own = {"key": "hunter3", "port": 1}
    assert processes.calls == [
        (0, {**own, "password": "hunter2"}),
        (9, {**own, "password": "hunter4"}),
    ]
    assert delivered == [
        Failed(1, "secret bmc/n02: it is not set: haptera secret set bmc/n02", refused=True),
        Failed(
            2,
            "secret bmc/{name}: name of the entity is not a valid name"
            " (give it one: letters, digits, dots, dashes)",
            refused=True,
        ),
    ]


async def test_a_secret_that_no_file_can_be_called_fails_its_call_alone(tmp_path):
    kept, processes, told = SecretStore(tmp_path), Calls(), []
    named = '{"password":{"secret":"file:/{name}\\u0000"}}'

    starter = Starter(processes, kept.find_at_parent, told.extend, kept.read_at_parent)
    starter.start(Start("bmc", 1, named))
    await processes.ready.wait()
    starter.call(Call(7, Work.LOOK, "bmc", "look", N01, {}, {}, "", deadline_at=None))
    assert told == [Failed(7, "ValueError: embedded null byte", refused=True)]


class Calls:
    """What a `Starter` starts and calls."""

    def __init__(self):
        self.started, self.calls, self.ready = [], [], asyncio.Event()

    def start(self, start):
        self.started.append(start.settings)
        self.ready.set()

    def call(self, call, boot, settings):
        self.calls.append((call.id, settings))


@pytest.fixture
def keys(tmp_path, monkeypatch):
    """Gives the process these keys, by the variable."""

    def give(*given):
        file = tmp_path / "keys"
        file.write_bytes(b"\n".join(given))
        file.chmod(0o600)
        monkeypatch.setenv("HAPTERA_SECRETS_KEY", str(file))
        return SecretStore.open(tmp_path)

    return give


OLD, NEW = urlsafe_b64encode(b"o" * 32), urlsafe_b64encode(b"n" * 32)


def test_with_a_key_nothing_on_disk_tells_a_secret(tmp_path, keys):
    SecretStore.open(tmp_path).put("before", b"hunter1\n")
    kept = keys(OLD)
    kept.put("after", "pässwörd".encode())
    kept.put("long", b"x" * SECRET_BYTES_MAX)

    assert [found(kept, one) for one in ("before", "after")] == ["hunter1", "pässwörd"]
    assert found(kept, "long") == "x" * SECRET_BYTES_MAX
    written = b"".join(one.read_bytes() for one in (tmp_path / "secrets").iterdir())
    assert not any(one in written for one in (b"hunter1", "pässwörd".encode(), b"xxxx"))


def test_a_new_key_takes_the_place_of_an_old_one(tmp_path, keys):
    keys(OLD).put("bmc", b"hunter2")
    assert found(keys(NEW, OLD), "bmc") == "hunter2"
    assert found(keys(NEW), "bmc") == "hunter2"


def test_what_an_earlier_version_sealed_is_read_and_sealed_anew(tmp_path, keys):
    """In the first form, by Fernet; also what only the second of two keys opens."""
    private_directory(tmp_path / "secrets")
    file = tmp_path / "secrets" / "bmc"
    before = b"haptera sealed 1 0123456789abcdef\n" + Fernet(OLD).encrypt(b"hunter2")
    file.write_bytes(before)
    file.chmod(0o600)
    assert found(keys(NEW, OLD), "bmc") == "hunter2"
    assert file.read_bytes()[:17] == b"haptera sealed 2 "
    assert found(keys(NEW), "bmc") == "hunter2"


@pytest.mark.parametrize("at", [0, 5, 17, 34, 46, -1])
def test_what_was_sealed_and_changed_since_is_not_read(tmp_path, keys, at):
    kept = keys(OLD)
    kept.put("bmc", b"hunter2")
    file = tmp_path / "secrets" / "bmc"
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)
    with pytest.raises(HapteraError, match=r"secret bmc is (sealed with another key|not UTF-8)"):
        found(kept, "bmc")


def test_who_starts_again_with_the_same_key_writes_nothing(tmp_path, keys):
    SecretStore.open(tmp_path).put("bmc", b"hunter2")
    keys(NEW, OLD)
    file = tmp_path / "secrets" / "bmc"
    before = file.read_bytes()
    keys(NEW, OLD)
    assert file.read_bytes() == before
    with pytest.raises(HapteraError, match="secret other is sealed already"):
        SecretStore.open(tmp_path).put("other", before)


def test_what_is_sealed_is_told_without_its_key(tmp_path, keys, monkeypatch, caplog):
    keys(OLD).put("bmc", b"hunter2")
    with pytest.raises(HapteraError, match="secret bmc is sealed with another key, or damaged"):
        found(keys(NEW), "bmc")
    assert caplog.messages == [
        "secret bmc is sealed with another key, or damaged"
        " (add its key; where it is damaged, restore a backup, or set the secret again)"
    ]
    monkeypatch.delenv("HAPTERA_SECRETS_KEY")
    kept = SecretStore.open(tmp_path)
    with pytest.raises(HapteraError, match="secret bmc is sealed, and no key is given") as told:
        found(kept, "bmc")
    assert told.value.do == (
        "name the file of keys in HAPTERA_SECRETS_KEY, or as systemd's credential haptera-secrets"
    )


@pytest.mark.parametrize("content", [b"", b"hunter2", OLD + b"\nhunter2", b"\xff"])
def test_a_file_that_holds_no_keys_is_refused_without_its_content(tmp_path, keys, content):
    with pytest.raises(HapteraError, match="this is no list of keys for secrets") as told:
        keys(content)
    assert "hunter2" not in str(told.value)


def test_keys_that_others_can_read_are_refused(tmp_path, keys):
    keys(OLD)
    (tmp_path / "keys").chmod(0o640)
    with pytest.raises(HapteraError, match="others can read the keys of secrets"):
        SecretStore.open(tmp_path)


def test_a_credential_of_the_daemon_is_a_key(tmp_path, keys, monkeypatch):
    keys(OLD).put("bmc", b"hunter2")
    monkeypatch.delenv("HAPTERA_SECRETS_KEY")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    with pytest.raises(HapteraError, match="no key is given"):
        found(SecretStore.open(tmp_path), "bmc")
    (tmp_path / "haptera-secrets").write_bytes(OLD)
    assert found(SecretStore.open(tmp_path), "bmc") == "hunter2"


@pytest.mark.parametrize("form", [b"1", b"2"])
@pytest.mark.parametrize("kept", [15, 17, 34, 40, 46, 50])
def test_what_is_left_of_something_sealed_is_told_like_what_was_changed(tmp_path, keys, form, kept):
    held = keys(OLD)
    held.put("bmc", b"hunter2")
    file = tmp_path / "secrets" / "bmc"
    content = file.read_bytes()[:kept]
    file.write_bytes(content[:15] + form + content[16:])
    with pytest.raises(HapteraError, match="secret bmc is sealed with another key, or damaged"):
        found(held, "bmc")


def test_who_seals_many_at_a_start_says_how_far_that_is(tmp_path, caplog, keys, monkeypatch):
    monkeypatch.setattr("haptera.runtime.processes.secrets.TOLD_EACH", 2)
    for number in range(5):
        SecretStore.open(tmp_path).put(f"bmc{number}", b"hunter2")
    with caplog.at_level("INFO"):
        keys(OLD)
    assert caplog.messages[-2:] == [f"sealed {done} secrets with the first key" for done in (2, 4)]


def test_who_starts_with_unsealed_secrets_says_so(tmp_path, caplog, keys, monkeypatch):
    keys(OLD).put("sealed", b"hunter1")
    monkeypatch.delenv("HAPTERA_SECRETS_KEY")
    SecretStore.open(tmp_path)
    assert caplog.messages == []
    SecretStore(tmp_path).put("bmc", b"hunter2")
    SecretStore.open(tmp_path)
    assert caplog.messages == [
        "1 of the secrets are stored unsealed: HAPTERA_SECRETS_KEY names no file of keys"
    ]
