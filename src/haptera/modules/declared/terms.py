"""The terms in which a site file declares a module: how it asks, which looks and which steps."""

from typing import Any

import msgspec

from haptera.kinds.declared.kind import KindTerms


class _Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Any of them: a key that it does not have is an error."""


class HttpTerms(_Terms, frozen=True, omit_defaults=True):
    """An API over HTTP: `auth` says how the token of the settings is sent.

    `error` is where the words are in an answer that is an error.
    """

    url: str
    auth: str = "bearer"
    ca_file: str | None = None
    certificate_file: str | None = None
    per_second: float = 20
    at_once: int = 8
    error: str | None = None


class ListTerms(_Terms, frozen=True, omit_defaults=True):
    """One answer for many entities, in pages: `name` is where an item has its entity's name.

    What was read serves other looks for `fresh_s`.
    """

    get: str
    items: str
    name: str
    next: str | None = None
    fresh_s: float = 1


class TaskTerms(_Terms, frozen=True, omit_defaults=True):
    """The task behind a 202: read at `get` with the value at `id`, or where its Location says.

    Of a step that only waits for what is under way, `get` is a path of its entity.
    """

    state: str
    done: list[str]
    failed: list[str]
    get: str | None = None
    id: str | None = None
    error: str | None = None
    every_s: float = 1


class DeclaredLook(_Terms, frozen=True, omit_defaults=True):
    """A look at `of`: by one way of asking, and what its answer means.

    The text found `at` a place (of a command's output: what `match` has in parentheses) is looked
    up in `values`; `missing` is the value where the entity is not there. `equals` compares places
    with what is desired, for a variable that is `applied`. `note` is what to say beside it.
    """

    of: str
    get: str | None = None
    from_list: str | None = msgspec.field(name="list", default=None)
    run: list[str] | None = None
    at: str | None = None
    match: str | None = None
    exit: dict[str, str] = {}
    values: dict[str, str] = {}
    equals: dict[str, str] = {}
    missing: str | None = None
    note: str | None = None
    requires: dict[str, str | list[str]] = {}
    every_s: float = 10
    within_s: float = 5


class DeclaredStep(_Terms, frozen=True, omit_defaults=True):
    """A step that brings variables `to` values, by one way of asking.

    One that has only a `task` waits for what others began.
    With `etag`, what is at that path is read first and must be the same when it is changed.
    """

    to: dict[str, str]
    within_s: float
    from_: dict[str, str | list[str]] = msgspec.field(name="from", default_factory=dict)
    requires: dict[str, str | list[str]] = {}
    post: str | None = None
    put: str | None = None
    patch: str | None = None
    delete: str | None = None
    run: list[str] | None = None
    body: Any = None
    etag: str | None = None
    task: TaskTerms | None = None
    late_s: float | None = None
    ends_with_call: bool = False
    disruptive: bool = False
    cost: int = 1


class Declaration(_Terms, frozen=True, omit_defaults=True):
    """A module: the kind that it serves, which the site declares or not, and its parts."""

    kind: str
    http: HttpTerms | None = None
    token_in: str | None = None
    lists: dict[str, ListTerms] = {}
    looks: dict[str, DeclaredLook] = {}
    steps: dict[str, DeclaredStep] = {}
    kind_terms: KindTerms | None = None
