"""Checks of a declared module's terms, made before any program or API is asked."""

import re
from collections.abc import Iterable, Iterator

from haptera.modules.declared.exchange import ApiOrigin
from haptera.modules.declared.parts import METHODS
from haptera.modules.declared.terms import (
    Declaration,
    DeclaredLook,
    DeclaredStep,
    HttpTerms,
    TaskTerms,
)
from haptera.modules.declared.texts import holes, path_of
from haptera.sdk import Applied, HapteraError, Kind

PARTS_MAX = 100
AT_ONCE_MAX = 64
PER_SECOND_MAX = 1_000
_AUTH = re.compile(r"bearer|basic|header [A-Za-z0-9-]{1,60}")
_PART = re.compile(r"[a-z][a-z0-9_]{0,60}")
_ENVIRONMENT = re.compile(r"[A-Z_][A-Z0-9_]{0,60}")
# The variables that the host sets itself.
_NOT_OURS = frozenset({"PATH", "LC_ALL", "HAPTERA_LINK"})


def check(kind: Kind, terms: Declaration) -> None:
    """See that each part is one.

    Raises:
        HapteraError: one is not; it says where.
    """
    if not terms.looks or len(terms.looks) + len(terms.steps) > PARTS_MAX:
        do = f"declare a look for each variable that it serves, and {PARTS_MAX} parts at most"
        raise HapteraError("has no looks, or too many parts", where="looks", do=do)
    if terms.http is not None:
        _check_http(terms.http)
    name = terms.token_in
    if name is not None and (_ENVIRONMENT.fullmatch(name) is None or name in _NOT_OURS):
        raise HapteraError("no name of a variable of programs", where="token_in", do="as PDU_TOKEN")
    for part, listed in terms.lists.items():
        with _Where(f"lists.{part}"):
            _check_path(listed.get, frozenset())
            _check_paths([listed.items, listed.name, listed.next])
            _check_seconds(0, listed.fresh_s, 3_600)
    known = {"name", *(one.name for one in kind.attributes), *(one.name for one in kind.plain)}
    if not kind.of_cluster:
        known.add("node")
    for part, look in terms.looks.items():
        with _Where(f"looks.{_name(part)}"):
            _check_look(look, terms, kind, known)
    for part, step in terms.steps.items():
        with _Where(f"steps.{_name(part)}"):
            _check_step(step, terms, known)
            if step.disruptive and kind.of_cluster and kind.serves is None:
                do = f"write under kinds.{kind.name} which value serves: {{VARIABLE: VALUE}}"
                raise HapteraError("is disruptive, and nothing could ever permit it", do=do)


def _check_look(look: DeclaredLook, terms: Declaration, kind: Kind, known: set[str]) -> None:
    asked = [one for one in (look.get, look.from_list, look.run) if one is not None]
    if len(asked) != 1:
        raise HapteraError("asks in no way, or in several", do="write one of get, list and run")
    _check_seconds(0.001, look.within_s, 3_600)
    _check_seconds(0.1, look.every_s, 86_400)
    if look.run is not None:
        _check_words(look.run, known)
        _check_match(look)
    else:
        _check_api(terms)
    if look.get is not None:
        _check_path(look.get, known)
    if look.from_list is not None and look.from_list not in terms.lists:
        raise HapteraError(f"there is no list {look.from_list!r}", do="declare it under lists")
    _check_paths([look.at, look.note, *look.equals])
    _check_holes(look.equals.values(), known)
    variable = kind.variable(look.of)
    if variable is None:
        known_ones = ", ".join(one.name for one in kind.variables)
        raise HapteraError(f"{kind.name} has no variable {look.of!r}", do=f"use {known_ones}")
    applied = variable.values is Applied
    if applied != bool(look.equals) or (applied and (look.at or look.run or look.missing)):
        do = "write equals for a variable that is applied, and for it only: {PATH: '{version}'}"
        raise HapteraError("compares what cannot be compared, or does not compare", do=do)
    if not applied and look.run is None and look.at is None:
        raise HapteraError("says not where the value is", do="write at: PATH")
    for value in (*look.values.values(), *look.exit.values(), look.missing):
        if value is not None and not variable.has(value):
            raise HapteraError(f"{variable.path} is never {value!r}", do="name one of its values")


def _check_match(look: DeclaredLook) -> None:
    if look.match is None:
        return
    try:
        groups = re.compile(look.match).groups
    except re.error as error:
        raise HapteraError(f"match is no regular expression: {error}") from None
    if groups != 1:
        raise HapteraError("match has not one group", do="put the value in parentheses, once")


def _check_step(step: DeclaredStep, terms: Declaration, known: set[str]) -> None:
    paths = [path for one in METHODS if (path := getattr(step, one)) is not None]
    waits = step.task is not None and not paths
    if len(paths) + (step.run is not None) + waits != 1 or not step.to:
        do = "write `to`, and one of post, put, patch, delete, run, and a task"
        raise HapteraError("changes nothing, or in several ways", do=do)
    _check_seconds(0.001, step.within_s, 86_400)
    _check_seconds(0, 0 if step.late_s is None else step.late_s, 86_400)
    if stray := sorted(step.from_.keys() - step.to.keys()):
        raise HapteraError(f"{stray[0]} is not changed", do="write it under requires")
    if step.run is not None:
        _check_words(step.run, known)
        if step.task or step.etag or step.body is not None:
            raise HapteraError("a command has no task, etag or body", do="leave them out")
        return
    _check_api(terms)
    for path in paths:
        _check_path(path, known)
    if step.etag is not None:
        _check_path(step.etag, known)
    _check_holes(_texts(step.body), known)
    if step.task is not None:
        _check_task(step.task, step, known if waits else None)


def _check_task(task: TaskTerms, step: DeclaredStep, known: set[str] | None) -> None:
    """`known` is what fills its path where there is nothing but it, and it waits for others."""
    if known is not None and (task.get is None or task.id is not None or step.body or step.etag):
        raise HapteraError("waits, and says not for what", do="write task.get: PATH, no id")
    if known is None and (task.get is None) != (task.id is None):
        raise HapteraError("task.get and task.id go together", do="write both, or neither")
    if task.get is not None:
        _check_path(task.get, {"id"} if known is None else known)
    _check_paths([task.id, task.state, task.error])
    _check_seconds(0.1, task.every_s, 3_600)


def _check_http(http: HttpTerms) -> None:
    with _Where("http"):
        ApiOrigin(http.url).check()
        if _AUTH.fullmatch(http.auth) is None:
            raise HapteraError("auth is unknown", do="write bearer, basic, or `header NAME`")
        if not 1 <= http.at_once <= AT_ONCE_MAX or not 0.01 <= http.per_second <= PER_SECOND_MAX:
            do = f"at_once is 1 to {AT_ONCE_MAX}, per_second at most {PER_SECOND_MAX}"
            raise HapteraError("asks too often, or never", do=do)
        _check_paths([http.error])


def _check_api(terms: Declaration) -> None:
    if terms.http is None:
        raise HapteraError("there is no API to ask", do="write http: {url: …}")


def _check_path(path: str, known: Iterable[str]) -> None:
    plain = path.isascii() and path.isprintable() and " " not in path
    if not path.startswith("/") or path.startswith("//") or "#" in path or not plain:
        raise HapteraError(f"{path[:80]!r} is no path", do="begin with one /, as /nodes/{name}")
    _check_holes([path], known)


def _check_words(texts: list[str], known: set[str]) -> None:
    if not texts or not texts[0] or holes(texts[0]):
        raise HapteraError("names no program", do="write [PROGRAM, WORD, …]")
    _check_holes(texts, known)


def _check_holes(texts: Iterable[str], known: Iterable[str]) -> None:
    for text in texts:
        for hole in holes(text):
            if hole not in known:
                names = ", ".join(sorted(known)) or "none"
                raise HapteraError(f"nothing is called {{{hole}}}", do=f"use one of: {names}")


def _check_paths(paths: Iterable[str | None]) -> None:
    for path in paths:
        if path is not None:
            path_of(path)


def _check_seconds(least: float, given: float, most: float) -> None:
    if not least <= given <= most:
        raise HapteraError(f"{given} s is out of bounds", do=f"write {least} to {most}")


def _texts(data: object) -> Iterator[str]:
    match data:
        case str():
            yield data
        case dict():
            for one in data.values():
                yield from _texts(one)
        case list():
            for one in data:
                yield from _texts(one)
        case _:
            pass


def _name(part: str) -> str:
    if _PART.fullmatch(part) is None:
        raise HapteraError(f"{part[:80]!r} is no name of a part", do="write as switch_on")
    return part


class _Where:
    """A place for the errors raised inside it that name none."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, HapteraError) and error.where is None:
            raise HapteraError(error.what, where=self._where, do=error.do) from None
