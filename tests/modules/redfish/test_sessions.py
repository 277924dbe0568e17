"""Sessions at a service that has places for eight: none is left behind, whatever ends."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from haptera.lab.redfish_bmc import SESSIONS_PATH
from haptera.modules.effects import DeviceError, LoginError, NotYetError
from haptera.modules.redfish.bmc import end_sessions, lifespan
from haptera.modules.redfish.sessions import SUFFIX, sessions
from haptera.sdk import HapteraError, Refused, Setup
from tests.modules.redfish.fake_service import Asked, Told, error, fake_service, system, usual

pytestmark = pytest.mark.net

PLACES = 8
CALLS = PLACES + 1


@pytest.fixture(autouse=True)
def _no_session_of_an_earlier_test() -> Iterator[None]:
    yield
    asyncio.run(end_sessions())


@dataclass
class Places:
    """A service with few places; `says` is what it tells of a session that it opens."""

    says: str = "location"
    refuses: int | None = None
    elsewhere: str | None = None
    opened: int = 0
    held: dict[str, str] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> Told:
        sessions_path = self.elsewhere or SESSIONS_PATH
        if asked.line == f"POST {sessions_path}":
            return self._open(sessions_path)
        if asked.line == f"POST {SESSIONS_PATH}":
            return Told(404)
        if asked.line == "GET /redfish/v1/":
            return Told(body={"Links": {"Sessions": {"@odata.id": sessions_path}}})
        known = asked.headers["X-Auth-Token"] in self.held.values()
        if asked.method == "DELETE" and (known or "Authorization" in asked.headers):
            return Told(204 if self.held.pop(asked.path, None) else 404)
        if not known:
            return Told(401)
        if asked.method != "GET" and self.refuses is not None:
            return Told(self.refuses, error("no privilege", "Base.1.8.InsufficientPrivilege"))
        return usual(asked, system())

    def _open(self, sessions_path: str) -> Told:
        if len(self.held) == PLACES:
            return Told(503, error("too many sessions"))
        self.opened += 1
        path = f"{sessions_path}/{self.opened}"
        self.held[path] = f"token{self.opened}"
        token = {"X-Auth-Token": self.held[path]}
        match self.says:
            case "location":
                return Told(201, {}, {**token, "Location": path})
            case "an absolute location":
                return Told(201, {}, {**token, "Location": f"https://bmc.example{path}"})
            case "its id in the body":
                return Told(201, {"@odata.id": path}, token)
            case "its number in the body":
                return Told(201, {"Id": str(self.opened)}, token)
            case "no token":
                return Told(201, {}, {"Location": path})
            case _:
                return Told(201, b"", token)


@pytest.mark.parametrize(
    "says",
    ["location", "an absolute location", "its id in the body", "its number in the body", "nothing"],
)
def test_one_session_serves_all_calls_and_is_ended_by_whatever_names_it(
    tmp_path: Path, says: str
) -> None:
    places = Places(says)
    with fake_service(tmp_path, places) as service:
        for _ in range(CALLS):
            assert asyncio.run(service.bmc(auth="session").status()) == "on"
        assert places.opened == 1
        asyncio.run(end_sessions())
        assert len(places.held) == (says == "nothing")


def test_a_session_that_cannot_be_used_is_ended_at_once(tmp_path: Path) -> None:
    places = Places("no token")
    with fake_service(tmp_path, places) as service:
        for _ in range(CALLS):
            with pytest.raises(HapteraError, match="opens a session without a token"):
                asyncio.run(service.bmc(auth="session").status())
    assert (places.opened, places.held) == (CALLS, {})


@pytest.mark.parametrize("status", [400, 403, 404, 409, 500, 503])
def test_a_command_that_is_refused_in_a_good_session_leaves_it_good(
    tmp_path: Path, status: int
) -> None:
    places = Places(refuses=status)
    with fake_service(tmp_path, places) as service:
        for _ in range(CALLS):
            with pytest.raises((Refused, DeviceError), match="no privilege"):
                asyncio.run(service.bmc(auth="session").power_on())
            assert asyncio.run(service.bmc(auth="session").status()) == "on"
    assert places.opened == 1


def test_a_session_that_the_service_does_not_know_is_ended_before_the_next(tmp_path: Path) -> None:
    """Some say 401 of a good session: of one that may not do this, say."""
    places = Places(refuses=401)
    with fake_service(tmp_path, places) as service:
        for number in range(CALLS):  # Of one password, the second is not tried at once.
            with pytest.raises(LoginError):
                asyncio.run(service.bmc(auth="session", password=str(number)).power_on())
    assert len(places.held) == 1


def test_sessions_are_where_the_root_of_the_service_says(tmp_path: Path) -> None:
    places = Places(elsewhere="/redfish/v1/Sessions")
    with fake_service(tmp_path, places) as service:
        assert asyncio.run(service.bmc(auth="session").status()) == "on"
        asyncio.run(end_sessions())
    assert (places.opened, places.held) == (1, {})


def test_a_service_without_a_free_place_says_so(tmp_path: Path) -> None:
    places = Places(held={str(number): "another's" for number in range(PLACES)})
    with (
        fake_service(tmp_path, places) as service,
        pytest.raises(NotYetError, match="opens no session: 503 too many sessions"),
    ):
        asyncio.run(service.bmc(auth="session").status())


def test_another_user_has_a_session_of_its_own(tmp_path: Path) -> None:
    places = Places()
    with fake_service(tmp_path, places) as service:
        for user in ("one", "two", "one"):
            asyncio.run(service.bmc(auth="session", user=user).status())
        assert (places.opened, len(places.held)) == (3, 1)


def test_what_a_killed_process_had_opened_the_next_one_goes_on_with(tmp_path: Path) -> None:
    places, folder = Places(), tmp_path / "module"
    folder.mkdir()

    async def story() -> None:
        for _ in range(CALLS):
            sessions.open_folder(folder)  # As after `kill -9`.
            assert await service.bmc(auth="session").status() == "on"
            (kept,) = folder.glob(f"*{SUFFIX}")
            assert kept.stat().st_mode & 0o777 == 0o600
            for one in sessions.all():
                sessions.forget(one)
        async with lifespan(Setup(None, folder)):
            assert len(sessions.all()) == 1
        assert list(folder.iterdir()) == []

    with fake_service(tmp_path, places) as service:
        asyncio.run(story())
        assert (places.opened, places.held) == (1, {})
