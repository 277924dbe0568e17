"""Whatever haptera declares that looks like a command, a program or a path says that it is one."""

from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Plain
from haptera.model.token_scope import Scope
from haptera.rest.endpoints import ENDPOINTS
from tests.kinds.code_fields import Field, of_kinds, of_request, of_settings

# These look like code, and are none: nothing is run or opened by them.
NO_CODE = {
    "settings of ipmi: user": "an account of the BMC",
    "settings of redfish: user": "an account of the BMC",
    "settings of sensors: disks": "mount points, of which the space is measured",
}
# So are these, of requests.
NO_CODE_ASKED = {
    "SubmitSpec.user": "an account of the node; any but the jobs' own takes exec",
    "ReadingsBody.source": "the name of who reports, for people",
    "SubmitSpec.folder": "where the command begins, in its image",
}
# Who may ask for what is run, with less than to run commands.
RUN_WITHOUT_EXEC = {
    "/v1/rolls": "the write of the health check takes exec, as any write of a command does",
    "/v1/jobs": "as a user without rights, unless the caller may run commands",
}


def test_what_looks_like_code_says_that_it_is() -> None:
    found = [*of_kinds(), *of_settings()]
    assert len(found) > 70
    looks = [one for one in found if one.looks_like_code and one.place not in NO_CODE]
    assert [one.place for one in looks if not one.meaning] == []
    assert len(looks) > 15


def test_the_exceptions_are_there_and_look_like_code() -> None:
    found = {one.place: one for one in (*of_kinds(), *of_settings())}
    assert [name for name in NO_CODE if not found[name].looks_like_code] == []
    assert [name for name in NO_CODE if found[name].meaning] == []


def test_a_new_field_that_looks_like_code_is_found() -> None:
    for name, said, hint in (
        ("wrapper_command", "", str),
        ("at", "A folder on the parent's machine.", str),
        ("extra", "", list[str]),
        ("config", "", str | None),
    ):
        assert Field("x.y", name, said, None, hint).looks_like_code
    assert not Field("x.y", "path_count", "", None, int).looks_like_code
    assert Field("x.y", "root", "", None, str, "/").looks_like_code
    assert Field("x.y", "at", "", None, tuple[str, ...], ("/srv",)).looks_like_code


def test_what_a_request_has_run_says_so_and_takes_the_scope_for_it() -> None:
    taking = [(one, field) for one in ENDPOINTS for field in of_request(one.takes)]
    looks = [(one, field) for one, field in taking if field.looks_like_code]
    bare = {field.place for _, field in looks if not field.meaning}
    assert bare == NO_CODE_ASKED.keys()
    runs = {one.path: one.scope for one, field in taking if field.meaning}
    assert runs.keys() == {"/v1/jobs", "/v1/rolls", "/v1/entities/{entity}/exec"}
    weak = [path for path, scope in runs.items() if scope is None or not scope.includes(Scope.EXEC)]
    assert weak == [*RUN_WITHOUT_EXEC]


def test_a_field_says_what_it_is() -> None:
    one = Plain("backend", "conf", str, meaning=Meaning.CODE_FILE)
    assert str(one.meaning) == "a file that can load code"
