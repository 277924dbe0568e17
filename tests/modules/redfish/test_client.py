"""What DSP0266 obliges a client to do: each test is in a table of docs/reference/redfish.md."""

import ast
import asyncio
import gzip
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from haptera.modules.effects import LackingError, LoginError, NotYetError
from haptera.modules.redfish.exchange import ANSWER_BYTES_MAX, RedfishError
from haptera.sdk import Refused
from tests.modules.redfish.fake_service import (
    HOST,
    MEMBERS,
    RESET,
    SYSTEM,
    SYSTEMS,
    Asked,
    FakeService,
    Told,
    error,
    fake_service,
    system,
    usual,
)

HERE = Path(__file__)
PAGE = HERE.resolve().parents[3] / "docs" / "reference" / "redfish.md"
TASK = "/redfish/v1/TaskService/TaskMonitors/7"


def power(service: FakeService) -> str:
    return asyncio.run(service.bmc().status())


@pytest.mark.net
def test_headers_of_a_request(tmp_path: Path) -> None:
    with fake_service(tmp_path, lambda asked: usual(asked, system())) as service:
        asyncio.run(service.bmc().boot_from_network_once())
        for one in service.asked:
            assert one.headers["Accept"] == "application/json"
            assert one.headers["OData-Version"] == "4.0"
            assert one.headers["Host"] == service.address
            assert one.headers["User-Agent"] == "haptera"
        assert service.changes[0].headers["Content-Type"] == "application/json"


@pytest.mark.net
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("how", ["/redfish/v1/Here/", "Here/", "https://{}/redfish/v1/Here/"])
def test_redirects_are_followed_at_the_same_service(tmp_path: Path, status: int, how: str) -> None:
    def answers(asked: Asked) -> Told:
        if asked.path == SYSTEMS:
            return Told(status, b"", {"Location": how.format(service.address)})
        return usual(asked, system()) if asked.path == SYSTEM else Told(body=MEMBERS)

    with fake_service(tmp_path, answers) as service:
        assert power(service) == "on"
        assert service.lines == [f"GET {SYSTEMS}", "GET /redfish/v1/Here/", f"GET {SYSTEM}"]


@pytest.mark.net
@pytest.mark.parametrize(
    "place",
    ["https://{host}:1/redfish/v1/Systems", "http://{address}/redfish/v1/Systems",
     "https://evil.example/redfish/v1/Systems", "//evil.example/", "https://{address}@evil.example/",
     "https://[", "https://{host}/redfish"],
)  # fmt: skip
def test_no_password_goes_where_a_redirect_leads_elsewhere(tmp_path: Path, place: str) -> None:
    def answers(_asked: Asked) -> Told:
        where = place.format(address=service.address, host=HOST)
        return Told(307, b"", {"Location": where})

    with fake_service(tmp_path, answers) as service:
        with pytest.raises(RedfishError, match="where no password goes"):
            power(service)
        assert len(service.asked) == 1


@pytest.mark.net
def test_redirects_come_to_an_end(tmp_path: Path) -> None:
    with fake_service(tmp_path, lambda asked: Told(308, b"", {"Location": asked.path})) as service:
        with pytest.raises(RedfishError, match="redirects more than 4 times"):
            power(service)
        assert len(service.asked) == 5


@pytest.mark.net
@pytest.mark.parametrize(("status", "method"), [(303, "GET"), (307, "POST"), (308, "POST")])
def test_a_command_that_is_redirected_is_given_where_it_leads(
    tmp_path: Path, status: int, method: str
) -> None:
    def answers(asked: Asked) -> Told:
        if asked.path == RESET:
            return Told(status, b"", {"Location": "/redfish/v1/Reset"})
        return Told(204) if asked.path == "/redfish/v1/Reset" else usual(asked, system())

    with fake_service(tmp_path, answers) as service:
        asyncio.run(service.bmc().power_on())
        assert service.lines[-1] == f"{method} /redfish/v1/Reset"


def bare(content: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(content) + packing.flush()


@pytest.mark.net
@pytest.mark.parametrize(
    ("coding", "pack"),
    [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress),
     ("deflate", bare), ("identity", bytes), ("GZIP", gzip.compress)],
)  # fmt: skip
def test_content_codings_are_undone(
    tmp_path: Path, coding: str, pack: Callable[[bytes], bytes]
) -> None:
    def answers(asked: Asked) -> Told:
        told = usual(asked, system())
        content = pack(msgspec.json.encode(told.body))
        return Told(told.status, content, {"Content-Encoding": coding})

    with fake_service(tmp_path, answers) as service:
        assert power(service) == "on"


@pytest.mark.net
@pytest.mark.parametrize(
    ("coding", "content"),
    [("br", b"x"), ("gzip", b"x"), ("gzip", gzip.compress(bytes(ANSWER_BYTES_MAX + 1)))],
)
def test_a_coding_that_cannot_be_undone_is_no_answer(
    tmp_path: Path, coding: str, content: bytes
) -> None:
    told = Told(200, content, {"Content-Encoding": coding})
    with (
        fake_service(tmp_path, lambda _: told) as service,
        pytest.raises(RedfishError, match=r"not asked|more than|not compressed"),
    ):
        power(service)


@pytest.mark.net
def test_a_list_is_read_over_all_its_pages(tmp_path: Path) -> None:
    def answers(asked: Asked) -> Told:
        if asked.path == SYSTEMS:
            return Told(body={"Members": [], "Members@odata.nextLink": f"{SYSTEMS}?$skip=1"})
        return Told(body=MEMBERS) if asked.path.endswith("?$skip=1") else usual(asked, system())

    with fake_service(tmp_path, answers) as service:
        assert power(service) == "on"


@pytest.mark.net
def test_a_list_without_end_is_read_for_a_while(tmp_path: Path) -> None:
    told = Told(body={"Members": [], "Members@odata.nextLink": SYSTEMS})
    with fake_service(tmp_path, lambda _: told) as service:
        with pytest.raises(RedfishError, match="lists no system"):
            power(service)
        assert len(service.asked) < 40


@pytest.mark.net
@pytest.mark.parametrize(
    "reference", ["{0}", "https://{1}{0}", "https://bmc.example{0}", "//bmc.example{0}"]
)
def test_references_are_absolute_or_relative(tmp_path: Path, reference: str) -> None:
    def answers(asked: Asked) -> Told:
        link = {"@odata.id": reference.format(SYSTEM, service.address)}
        target = reference.format(RESET, service.address)
        found = system(Actions={"#ComputerSystem.Reset": {"target": target}})
        return Told(body={"Members": [link]}) if asked.path == SYSTEMS else usual(asked, found)

    with fake_service(tmp_path, answers) as service:
        asyncio.run(service.bmc().power_on())
        assert service.lines[-2:] == [f"GET {SYSTEM}", f"POST {RESET}"]


@pytest.mark.net
@pytest.mark.parametrize("link", [str, lambda place: {"@odata.id": place}], ids=["text", "object"])
def test_a_reference_is_a_text_or_an_object(tmp_path: Path, link: Callable[[str], object]) -> None:
    info = {"target": link(RESET), "@Redfish.ActionInfo": link("/redfish/v1/info")}

    def answers(asked: Asked) -> Told:
        match asked.path:
            case "/redfish/v1/Systems":
                return Told(body={"Members": [], "@odata.nextLink": link(f"{SYSTEMS}?page=2")})
            case "/redfish/v1/Systems?page=2":
                return Told(body={"Members": [None, link(SYSTEM), link(f"{SYSTEM}/")]})
            case "/redfish/v1/info":
                values = [{"Name": "ResetType", "AllowableValues": ["ForceOn"]}]
                return Told(body={"Parameters": values})
            case _:
                page = asked.path.rstrip("/") == SYSTEM and asked.method == "GET"
                shown = system(Actions={"#ComputerSystem.Reset": info})
                return Told(body=shown) if page else usual(asked, shown)

    with fake_service(tmp_path, answers) as service:
        asyncio.run(service.bmc().power_on())
        assert service.lines[-1] == f"POST {RESET}"
        assert service.changes[0].body == {"ResetType": "ForceOn"}


@pytest.mark.net
@pytest.mark.parametrize(
    ("told", "words"),
    [(Told(200, b"<html>it starts</html>", {"Content-Type": "text/html"}), "is not a Redfish"),
     (Told(200, {"Members": []}), "lists no system")],
)  # fmt: skip
def test_a_page_for_people_is_told_from_a_list_without_systems(
    tmp_path: Path, told: Told, words: str
) -> None:
    with (
        fake_service(tmp_path, lambda _: told) as service,
        pytest.raises(RedfishError, match=words),
    ):
        power(service)


@pytest.mark.net
def test_systems_are_where_the_root_says_if_not_at_the_usual_place(tmp_path: Path) -> None:
    def answers(asked: Asked) -> Told:
        match asked.path:
            case "/redfish/v1/":
                return Told(body={"Systems": {"@odata.id": "/redfish/v1/Machines"}})
            case "/redfish/v1/Machines":
                return Told(body=MEMBERS)
            case "/redfish/v1/Systems":
                return Told(404)
            case _:
                return usual(asked, system())

    with fake_service(tmp_path, answers) as service:
        assert power(service) == "on"


@pytest.mark.net
@pytest.mark.parametrize(
    ("offered", "told"), [(["ForceOn"], "ForceOn"), (["On", "ForceOn"], "On"), ([], "On")]
)
def test_values_of_a_parameter_are_those_of_its_action_info(
    tmp_path: Path, offered: list[str], told: str
) -> None:
    info = {"target": RESET, "@Redfish.ActionInfo": f"{SYSTEM}/ResetActionInfo"}
    parameters = [{"Name": "Other"}, {"Name": "ResetType", "AllowableValues": offered}]

    def answers(asked: Asked) -> Told:
        if asked.path.endswith("/ResetActionInfo"):
            return Told(body={"Parameters": parameters})
        return usual(asked, system(Actions={"#ComputerSystem.Reset": info}))

    with fake_service(tmp_path, answers) as service:
        asyncio.run(service.bmc().power_on())
        assert service.changes[0].body == {"ResetType": told}


def tasks(*told: Told, accepted: Told | None = None) -> Callable[[Asked], Told]:
    """A service that accepts a reset, and tells this of its task, one after the other."""
    left = list(told)

    def answers(asked: Asked) -> Told:
        if asked.path == RESET:
            return accepted or Told(202, b"", {"Location": TASK, "Retry-After": "1"})
        return left.pop(0) if asked.path == TASK else usual(asked, system())

    return answers


@pytest.mark.net
@pytest.mark.parametrize(
    ("told", "raises"),
    [
        ([Told(202), Told(204)], None),
        ([Told(200, {"TaskState": "Completed"})], None),
        ([Told(400, error("no"))], LackingError),
        ([Told(403, error("no"))], Refused),
        ([Told(409, error("no"))], NotYetError),
        ([Told(500)], RedfishError),
        ([Told(200, {"TaskState": "Exception"})], RedfishError),
        ([Told(401)], RedfishError),
        ([Told(404)], RedfishError),
    ],
)
def test_a_task_is_followed_to_its_end(
    tmp_path: Path, told: list[Told], raises: type[Exception] | None
) -> None:
    with fake_service(tmp_path, tasks(*told)) as service:
        if raises is None:
            asyncio.run(service.bmc().power_on())
        else:
            with pytest.raises(raises):
                asyncio.run(service.bmc().power_on())
        assert service.lines[-1] == f"GET {TASK}"


@pytest.mark.net
@pytest.mark.parametrize(
    "accepted",
    [{"TaskMonitor": TASK, "@odata.id": "/redfish/v1/TaskService/Tasks/7"}, {"@odata.id": TASK},
     {"TaskMonitor": {"@odata.id": TASK}}],
)  # fmt: skip
def test_a_task_that_only_the_body_names_is_followed_and_its_words_are_told(
    tmp_path: Path, accepted: dict[str, object]
) -> None:
    failed = {"TaskState": "Exception", "Messages": [{"Message": "no power supply"}]}
    with fake_service(tmp_path, tasks(Told(200, failed), accepted=Told(202, accepted))) as service:
        with pytest.raises(RedfishError, match="its task ended as Exception: no power supply"):
            asyncio.run(service.bmc().power_on())
        assert service.lines[-1] == f"GET {TASK}"


@pytest.mark.net
@pytest.mark.parametrize(
    "accepted",
    [Told(202, b"", {"Location": TASK, "Retry-After": "100"}), Told(202), Told(202, {"Id": "7"})],
)
def test_a_task_that_takes_longer_is_left_to_the_next_look(tmp_path: Path, accepted: Told) -> None:
    with fake_service(tmp_path, tasks(accepted=accepted)) as service:
        asyncio.run(service.bmc().power_on())
        assert service.lines[-1] == f"POST {RESET}"


@pytest.mark.net
@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": "120"},
     {"Date": "Sat, 28 Nov 2026 08:00:00 GMT", "Retry-After": "Sat, 28 Nov 2026 08:02:00 GMT"}],
)  # fmt: skip
def test_a_service_that_asks_for_time_gets_it(tmp_path: Path, headers: dict[str, str]) -> None:
    busy = Told(503, error("booting"), headers)
    with fake_service(tmp_path, lambda _: busy) as service:
        with pytest.raises(RedfishError, match="503 booting"):
            power(service)
        with pytest.raises(NotYetError, match=r"503 booting; not asked again for 1[12]\d s"):
            power(service)
        assert len(service.asked) == 1


@pytest.mark.net
def test_a_login_is_not_good_because_the_root_answers_which_everybody_may_read(
    tmp_path: Path,
) -> None:
    elsewhere = "/redfish/v1/Machines"
    answers = {
        "/redfish/v1/": Told(body={"Systems": {"@odata.id": elsewhere}}),
        elsewhere: Told(401),
    }
    with fake_service(tmp_path, lambda asked: answers.get(asked.path, Told(404))) as service:
        with pytest.raises(LoginError):
            asyncio.run(service.bmc().status())
        assert service.lines[-1] == f"GET {elsewhere}"


@pytest.mark.net
def test_a_login_that_is_refused_is_not_repeated_at_once(tmp_path: Path) -> None:
    def answers(asked: Asked) -> Told:
        right = asked.headers["Authorization"] == "Basic b3BlcmF0b3I6cmlnaHQ="
        return usual(asked, system()) if right else Told(401, error("who?"))

    with fake_service(tmp_path, answers) as service:
        for _ in range(3):
            with pytest.raises(LoginError, match=r"refuses the login: 401 who\?"):
                power(service)
        assert len(service.asked) == 1
        assert asyncio.run(service.bmc(password="right").status()) == "on"


@pytest.mark.net
def test_a_look_asks_once_where_the_system_is(tmp_path: Path) -> None:
    gone = False

    def answers(asked: Asked) -> Told:
        if not gone:
            return usual(asked, system())
        moved = {SYSTEMS: {"Members": [{"@odata.id": f"{SYSTEM}a"}]}, f"{SYSTEM}a": system()}
        return Told(body=moved[asked.path]) if asked.path in moved else Told(404)

    with fake_service(tmp_path, answers) as service:
        assert (power(service), power(service)) == ("on", "on")
        assert service.lines == [f"GET {SYSTEMS}", f"GET {SYSTEM}", f"GET {SYSTEM}"]
        gone = True
        assert power(service) == "on"
        assert service.lines[3:] == [f"GET {SYSTEM}", f"GET {SYSTEMS}", f"GET {SYSTEM}a"]


@pytest.mark.net
def test_a_connection_that_ended_without_a_word_is_made_anew(tmp_path: Path) -> None:
    def answers(asked: Asked) -> Told:
        told = usual(asked, system())
        return Told(told.status, told.body, is_last=True)

    with fake_service(tmp_path, answers) as service:
        asyncio.run(service.bmc().boot_from_network_once())
        asyncio.run(service.bmc().power_on())
        assert [one.line for one in service.changes] == [f"PATCH {SYSTEM}", f"POST {RESET}"]


@pytest.mark.net
def test_what_follows_an_interim_answer_is_not_that_to_the_next_request(tmp_path: Path) -> None:
    late = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    settings = {"@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{SYSTEM}/SD"}}}

    def answers(asked: Asked) -> Told:
        if asked.path.endswith("/SD"):
            return Told(102, late)
        return (
            Told(403, error("no")) if asked.method == "PATCH" else usual(asked, system(**settings))
        )

    with fake_service(tmp_path, answers) as service, pytest.raises(Refused, match="403 no"):
        asyncio.run(service.bmc().boot_from_network_once())


@pytest.mark.net
def test_an_answer_that_breaks_off_is_none(tmp_path: Path) -> None:
    told = Told(200, b'{"Members": []}', {"Content-Length": "100", "Connection": "close"})
    with (
        fake_service(tmp_path, lambda _: told) as service,
        pytest.raises(RedfishError, match="does not answer"),
    ):
        power(service)


def test_the_page_has_each_of_these_and_no_other() -> None:
    """A line of its table ends with the test that shows it, of this file or of one beside it."""
    table = PAGE.read_text().partition("## Specification")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(test_\w+)`", table))
    tests = {
        path.stem: {
            one.name for one in ast.parse(path.read_text()).body if isinstance(one, ast.FunctionDef)
        }
        for path in HERE.parent.glob("test_*.py")
    }
    ours = {name for name in tests[HERE.stem] if name.startswith("test_")}
    known = set().union(*tests.values())
    assert ours - named == {"test_the_page_has_each_of_these_and_no_other"}
    assert named - known == set()
