"""`haptera module reload`: modules whose code is loaded anew, while what they do goes on."""

from datetime import UTC, datetime
from typing import Final

import click

from haptera.cli.commands.change.set import write
from haptera.cli.input import completing
from haptera.cli.input.terms import WriteTerms, terms_options
from haptera.cli.output.printing import entities_option
from haptera.cli.verb import answers, unwatched
from haptera.kinds import module
from haptera.model.answers.views import EntityView
from haptera.model.entity import is_name
from haptera.rest.schemas import Bulk
from haptera.runtime import clock

_TIME: Final = "%Y%m%dT%H%M%SZ"


@click.command("reload")
@answers(EntityView, Bulk)
@unwatched("it runs once; `haptera status --watch` shows the result")
@click.argument("selector", metavar="NAME|SELECTOR", shell_complete=completing.selectors)
@terms_options
@entities_option
@click.pass_context
def reload(ctx: click.Context, selector: str, terms: WriteTerms, output: str) -> None:
    r"""Load the code of module NAME anew, at the parent and on every node that has it.

    Or of those that SELECTOR means. A new process is started with the code that is installed; once
    it serves, the old one finishes its calls and ends. If it does not come to serve, the old one
    goes on, and `haptera why module:NAME` says why.

    \b
    Examples:
      haptera module reload ipmi
      haptera module reload "module:service@rack1n[1-4]" -m "new version"
    """
    now = datetime.fromtimestamp(clock.wall_s(), UTC).strftime(_TIME)
    write(ctx, meant(selector), {module.reloaded.name: now}, terms, dry_run=False, output=output)


def meant(selector: str) -> str:
    """The modules that are meant: by its name alone, wherever one is.

    >>> meant("ipmi"), meant("module:jobs@n1")
    ('module:ipmi or module:ipmi@*', 'module:jobs@n1')
    """
    kind = module.kind.name
    return f"{kind}:{selector} or {kind}:{selector}@*" if is_name(selector) else selector
