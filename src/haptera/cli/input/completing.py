"""What could be typed next: names of nodes, entities, variables and their values, and files.

Nothing is imported but where somebody asks: all commands name what they are completed by.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from haptera.model.errors import HapteraError

if TYPE_CHECKING:
    from haptera.client import Client
    from haptera.model.answers.views import AlikeView

# More than this nobody reads; a letter more is typed.
OFFERED_MAX: Final = 1_000


def selectors(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Nodes by their names, kinds, and entities of the kind that is typed."""
    kind, colon, _ = typed.partition(":")
    if not colon:
        kinds = (f"{one}:" for one in _kinds())
        return _offered(typed, kinds, _asked(ctx, lambda one: _names("node", one)))
    return _offered(typed, _asked(ctx, lambda one: _entities(kind, one)))


def kinds_or_selectors(ctx: click.Context, param: click.Parameter, typed: str) -> list[str]:
    """As selectors, and each kind alone, which means all of it."""
    return [*_offered(typed, _kinds()), *selectors(ctx, param, typed)]


def entities(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Entities, each with its kind."""
    kind, colon, _ = typed.partition(":")
    if not colon:
        return _offered(typed, (f"{one}:" for one in _kinds()))
    return _offered(typed, _asked(ctx, lambda one: _entities(kind, one)))


def variables(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """What may be desired of the entity that is named before."""
    return _offered(typed, _desirable(ctx))


def values(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """NAME= of what may be desired of the entity that is named before; NAME=VALUE behind it."""
    name, sign, _ = typed.partition("=")
    if not sign:
        return _offered(typed, (f"{one}=" for one in _desirable(ctx)))
    return _offered(typed, (f"{name}={one}" for one in _desirable(ctx).get(name, ())))


def tokens(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """The ids of tokens."""
    from haptera.client import calls

    found = _with_client(ctx, lambda client: [one.id for one in client.ask(calls.tokens()).tokens])
    return _offered(typed, found)


def files(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem[str]]:
    """Files and folders: the shell knows them."""
    return [CompletionItem(typed, type="file")]


def _kinds() -> Iterable[str]:
    from haptera.kinds import KINDS

    return KINDS


def _desirable(ctx: click.Context) -> dict[str, list[str]]:
    """What may be desired of the entity, each with its values where it is an enum."""
    from haptera.kinds import KINDS

    kind = KINDS.get(str(ctx.params.get("entity")).partition(":")[0])
    if kind is None:
        return {}
    found: dict[str, list[str]] = {one.name: [] for one in kind.plain}
    for one in kind.variables:
        found[one.name] = [str(value) for value in one.values if value != one.unknown]
    return found


def _asked(
    ctx: click.Context, names: Callable[[Iterable["AlikeView"]], Iterable[str]]
) -> Iterable[str]:
    from haptera.client import calls

    return _with_client(ctx, lambda client: [*names(client.ask(calls.status()).alike)])


def _with_client(ctx: click.Context, ask: Callable[["Client"], list[str]]) -> list[str]:
    """What the parent says; nothing where it says nothing soon: a shell waits."""
    from haptera.client import Client, find

    try:
        access = find(ctx.find_root().params.get("client_file")).access
        with Client(access, waiting=_give_up) as client:
            return ask(client)
    except HapteraError:
        return []


def _give_up() -> NoReturn:
    raise HapteraError("the parent is slow")


def _names(kind: str, alike: Iterable["AlikeView"]) -> Iterator[str]:
    from haptera.selectors.nodeset import expand

    for one in alike:
        if one.kind == kind:
            yield from expand(one.on)


def _entities(kind: str, alike: Iterable["AlikeView"]) -> Iterator[str]:
    for one in alike:
        for place in _names(kind, [one]):
            at = place if one.name in (None, place) else f"{one.name}@{place}"
            yield f"{kind}:{at}"


def _offered(typed: str, *offers: Iterable[str]) -> list[str]:
    """What begins as typed, in the order of people."""
    from haptera.selectors.nodeset import natural

    found = {one for some in offers for one in some if one.startswith(typed)}
    return sorted(found, key=natural)[:OFFERED_MAX]
