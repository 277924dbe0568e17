"""What no linter sees: first sentences, sizes, leftovers, words, and that the map is whole."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "haptera"
TEXT_SUFFIXES = {
    *("", ".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".json"),
    *(".sh", ".html", ".css", ".js", ".svg"),
}
OUR_DOT_FOLDERS = {".ci"}
# Vendored or made by a tool: not ours to write.
NOT_OURS = {"build", "LICENSE"}

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 40
# A room that holds more is two.
FOLDER_FILES_MAX = 20
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager"}
BANNED = {
    "leftover": re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))"),
    "path of one machine": re.compile(r"(?<![\w.])/(?:root|home)/\w"),
    "registry": re.compile(
        r"\b(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|crates\.io"
        r"|(?:deb|security)\.debian\.org|(?:archive|security)\.ubuntu\.com)\b"
    ),
}
NEWS = re.compile(r"\d+\.[a-z0-9-]+\.(added|changed|fixed|removed)\.md")
PINNED = re.compile(r"^([a-z0-9-]+==[^ ]+)(?: ; [^\\]+)? \\$")

# Each exception to a rule: the file, the rule, and why. One that nothing needs any more fails too.
ALLOWED: dict[tuple[str, str], str] = {
    ("STYLE.md", "leftover"): "it names the word it bans",
    ("tests/test_tidy.py", "leftover"): "it names the words it looks for",
}


# Where any exception ends, and why.
CATCH_ALL = {
    "src/haptera/sdk/host.py": "the author's code may raise anything",
    "src/haptera/sdk/threads.py": "the author's code may raise anything",
    "src/haptera/sdk/gathering.py": "the author's code may raise anything",
    "src/haptera/runtime/processes/zygote.py": "the last words of a process that ends anyway",
    "src/haptera/lab/tree.py": "the last words of a process that ends anyway",
    "src/haptera/testing/bench_process.py": "the author's code may raise anything",
}
# Who has tasks, and no boundary in any of them: they are not of many items.
NOT_BOUNDED = {
    "src/haptera/api/routes/stream.py": "two tasks of one answer",
    "src/haptera/cli/lab.py": "two tasks of one command",
    "src/haptera/cli/output/live/live.py": "two tasks of one command",
    "src/haptera/cli/output/live/waiting.py": "two tasks of one command",
    "src/haptera/conformance/talk.py": "one task of one talk",
    "src/haptera/daemon/agent.py": "its parts; it is nothing without one of them",
    "src/haptera/daemon/executing/executor.py": "two tasks of one command",
    "src/haptera/daemon/parent/parent.py": "its parts; it is nothing without one of them",
    "src/haptera/lab/bmc.py": "a lab is to fail loudly",
    "src/haptera/lab/supervisor.py": "a lab is to fail loudly",
    "src/haptera/modules/netboot/servers.py": "the parts of one server",
    "src/haptera/modules/replica/channels/serving.py": "one task of one replica, which ends it",
    "src/haptera/modules/replica/channels/session.py": "the parts of one talk with one program",
    "src/haptera/runtime/enrolment/enrol_server.py": "its parts; who connects has a boundary below",
    "src/haptera/sdk/controlling.py": "two tasks of one controller",
    "src/haptera/sdk/gathering.py": "the author's code may raise anything, and is caught",
    "src/haptera/sdk/host.py": "the author's code may raise anything, and is caught",
    "src/haptera/testing/controlling.py": "a test is to fail loudly",
}

# The rooms whose files open with a noun phrase already.
PLAIN = {"core", "planner", "runtime", "testing"}
VAGUE = {"hear", "lend", "stand", "take", "tend", "told", "want"}
QUESTION = re.compile(r"(What|Which|Who|Whom|Whose|Whether|How|Where|Why|When) ")


def test_each_source_file_opens_with_one_sentence() -> None:
    unlike = {place(path): line for path, line in first_lines() if not is_one_sentence(line)}

    assert unlike == {}


def test_each_file_of_the_deciding_rooms_opens_with_what_it_is() -> None:
    """A noun phrase names the subject; a question leaves it to the reader."""
    questions = {
        place(path): line
        for path, line in first_lines()
        if path.relative_to(SOURCE).parts[0] in PLAIN and QUESTION.match(line)
    }

    assert questions == {}


def test_no_method_of_the_core_has_a_verb_that_means_everything() -> None:
    defined = [
        f"{place(path)}: {node.name}"
        for path in modules()
        if path.relative_to(SOURCE).parts[0] == "core"
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef) and node.name in VAGUE
    ]

    assert defined == []


def test_what_tests_of_a_folder_share_ends_with_the_last_of_them() -> None:
    """Without `__init__.py`, pytest keeps it to the very end, and its addresses with it."""
    shared = {path: path.read_text() for path in (ROOT / "tests").rglob("conftest.py")}
    kept = [path for path, text in shared.items() if 'scope="session"' in text]
    packages = [path for path, text in shared.items() if 'scope="package"' in text]

    assert kept == []
    assert [place(one) for one in packages if not one.with_name("__init__.py").exists()] == []


def test_no_file_has_outgrown_one_idea() -> None:
    long = {place(path): len(lines(path)) for path in modules()}

    assert {name: n for name, n in long.items() if n > FILE_LINES_MAX} == {}


def test_no_room_holds_more_than_one_can_look_over() -> None:
    counts = Counter(path.parent for path in modules())

    assert {place(one): n for one, n in counts.items() if n > FOLDER_FILES_MAX} == {}


def test_no_function_has_outgrown_a_screen() -> None:
    long = {
        f"{place(path)}:{function.name}": length(function)
        for path in modules()
        for function in functions(path)
    }

    assert {name: n for name, n in long.items() if n > FUNCTION_LINES_MAX} == {}


def test_the_contract_that_holds_modules_apart_names_each_of_them() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (apart,) = (one for one in contracts["contracts"] if one["type"] == "independence")
    rooms = {path.parent.name for path in (SOURCE / "modules").glob("*/__init__.py")}

    assert {name.rpartition(".")[2] for name in apart["modules"]} == rooms


def test_no_public_class_name_is_defined_twice() -> None:
    places: dict[str, list[str]] = {}
    for path in modules():
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(place(path))

    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_each_file_name_says_what_is_in_it() -> None:
    vague = [place(path) for path in modules() if NAMES_THAT_SAY_NOTHING & words_of(path.stem)]

    assert vague == []


@pytest.mark.parametrize("rule", BANNED)
def test_no_text_holds_a(rule: str) -> None:
    found = {
        (place(path), rule): text
        for path in texts()
        for text in lines(path)
        if BANNED[rule].search(text) is not None
    }

    allowed = {key for key in ALLOWED if key[1] == rule}
    assert {key: text for key, text in found.items() if key not in allowed} == {}
    assert allowed - set(found) == set(), "nothing needs these exceptions any more"


def test_each_news_fragment_says_of_which_kind_it_is() -> None:
    names = {path.name for path in (ROOT / "news").glob("*.md")} - {"README.md"}

    assert {name for name in names if NEWS.fullmatch(name) is None} == set()


def test_each_lock_pins_all_by_hash_and_the_second_holds_the_first() -> None:
    run, dev = (pins(ROOT / name) for name in ("requirements.txt", "requirements-dev.txt"))

    assert run - dev == set()
    # Without it, haptera itself could not be installed offline.
    assert any(pin.startswith("setuptools==") for pin in run)


def test_all_exceptions_are_caught_in_few_places_alone() -> None:
    """Who has to clean up raises them again; who serves many items has a boundary for each."""
    found = {
        place(path)
        for path in modules()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ExceptHandler) and catches_all(node) and not raises(node)
    }

    assert found == set(CATCH_ALL)


def test_who_decodes_what_others_wrote_is_ready_for_all_that_it_may_be() -> None:
    """Bytes that are no UTF-8 raise a ValueError of another type, deep nesting a RecursionError."""
    found = {
        f"{place(path)}:{node.lineno}"
        for path in modules()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ExceptHandler)
        and node.type is not None
        and any(
            isinstance(one, ast.Attribute) and one.attr in ("DecodeError", "MsgspecError")
            for one in ast.walk(node.type)
        )
    }

    assert found == set(), "catch (ValueError, RecursionError)"


def test_who_runs_tasks_for_many_items_bounds_each() -> None:
    """In a task group, what goes wrong with one ends all of them, and the daemon."""
    served = {
        place(path)
        for path in modules()
        if re.search(r"TaskGroup\(|create_task\(", path.read_text())
    }
    bounded = {one for one in served if "Boundary(" in (ROOT / one).read_text()}

    assert served - bounded == set(NOT_BOUNDED), "give each item a Boundary, or say why not"


def test_the_glossary_has_each_word_once_in_order_and_on_one_line() -> None:
    tables = [[word for word, _ in rows] for rows in tables_of_glossary("| word |")]

    assert tables == [sorted(set(words), key=str.lower) for words in tables]
    assert len(tables) == 2


def test_a_word_is_of_users_or_of_developers() -> None:
    users, developers = ({word for word, _ in rows} for rows in tables_of_glossary("| word |"))

    assert users & developers == set()


def test_all_that_can_happen_and_all_that_can_be_asked_is_explained() -> None:
    bare = [
        f"{file}.{one.name}"
        for file in ("changes", "effects", "events")
        for one in ast.walk(ast.parse((SOURCE / "model" / f"{file}.py").read_text("utf-8")))
        if isinstance(one, ast.ClassDef) and ast.get_docstring(one) is None
    ]

    assert bare == []


def test_no_name_uses_a_word_that_another_word_replaced() -> None:
    (rows,) = tables_of_glossary("| not |")
    replaced = dict(rows)
    unlike = {
        f"{place(path)}: {name}": replaced[word]
        for path in modules()
        for name in names_made(path)
        for word in words_of(name) & set(replaced)
    }

    assert unlike == {}


def test_the_map_shows_each_package() -> None:
    map_file = ROOT / "ARCHITECTURE.md"
    text = map_file.read_text(encoding="utf-8")
    packages = [path.parent for path in modules() if path.name == "__init__.py"]
    names = {f"{one.relative_to(SOURCE)}/" for one in packages if one != SOURCE}
    names |= {path.name for path in SOURCE.glob("*.py") if path.name != "__init__.py"}

    assert [name for name in sorted(names) if name not in text] == []


def test_a_glossary_word_is_found_in_every_way_of_writing_names() -> None:
    assert words_of("OpenIntent") == {"open", "intent"}
    assert words_of("_within_ms") == {"within", "ms"}


def test_a_docstring_does_not_count_as_length() -> None:
    tree = ast.parse('def f() -> int:\n    """One.\n\n    Two.\n    """\n    return 1\n')
    (function,) = tree.body

    assert isinstance(function, ast.FunctionDef)
    assert length(function) == 2


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def texts() -> Iterator[Path]:
    """All that is written by hand; what a run leaves behind has a dot in front, or is listed."""
    for top in sorted(ROOT.iterdir()):
        if top.name in NOT_OURS or (top.name.startswith(".") and top.name not in OUR_DOT_FOLDERS):
            continue
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            folders = path.relative_to(ROOT).parts[:-1]
            made = any(one == "__pycache__" or one.endswith(".egg-info") for one in folders)
            if path.is_file() and path.suffix in TEXT_SUFFIXES and not made:
                yield path


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def pins(lock: Path) -> set[str]:
    """What the lock pins; every other line is a hash, never an index or an option."""
    heads = [line for line in lines(lock) if not line.startswith("    --hash=sha256:")]
    found = [PINNED.match(line) for line in heads]
    assert [line for line, match in zip(heads, found, strict=True) if match is None] == []
    return {match[1] for match in found if match is not None}


def first_lines() -> Iterator[tuple[Path, str]]:
    for path in modules():
        docstring = ast.get_docstring(parse(path)) or ""
        yield path, docstring.partition("\n\n")[0].replace("\n", " ")


def is_one_sentence(text: str) -> bool:
    # A command, or haptera itself, begins a sentence in small letters.
    begun = text[:1].isupper() or text.startswith(("`", "haptera"))
    return begun and text.endswith(".") and re.search(r"[.!?] [A-Z]", text) is None


def catches_all(handler: ast.ExceptHandler) -> bool:
    named = [] if handler.type is None else ast.walk(handler.type)
    names = {one.id for one in named if isinstance(one, ast.Name)}
    return handler.type is None or not names.isdisjoint({"Exception", "BaseException"})


def raises(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return span(function) - (span(function.body[0]) if ast.get_docstring(function) else 0)


def span(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


def names_made(path: Path) -> Iterator[str]:
    """The names that a file makes: of classes, functions, arguments, fields and variables."""
    for node in ast.walk(parse(path)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.AsyncFunctionDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def tables_of_glossary(head: str) -> list[list[tuple[str, str]]]:
    """The rows of each table of GLOSSARY.md whose first line starts with `head`."""
    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
    tables = [one for one in text.split("\n\n") if one.startswith(head)]
    return [[cells(row) for row in table.splitlines()[2:]] for table in tables]


def cells(row: str) -> tuple[str, str]:
    word, _, meaning = row.strip("| ").partition(" | ")
    return word, meaning


def test_all_that_an_example_or_the_tests_need_can_be_installed() -> None:
    known = set(re.findall(r"\[([\w.-]+)\]=", (ROOT / "tools/need").read_text()))
    needed = {one for file in ROOT.glob("examples/*/needs") for one in file.read_text().split()}
    asked = re.findall(r"tools/need --install ([\w. -]+)", (ROOT / "Makefile").read_text())
    assert len(asked) == 2
    assert needed.union(*map(str.split, asked)) - known == set()
