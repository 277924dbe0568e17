"""`haptera site`: the schema of site files."""

import json

import click

from haptera.cli.lazy import Words
from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched


@click.group(cls=Words, former={"check": "haptera.cli.commands.site.check:check"})
def site() -> None:
    """Write what editors need to know of site files."""


@site.command()
@unwatched("its output never changes")
def schema() -> None:
    r"""Write the JSON Schema of site files, for editors.

    Most of them read it where a site file has the line
    `# yaml-language-server: $schema=site.schema.json`.

    \b
    Examples:
      haptera site schema > site.schema.json
      haptera site schema | python3 -m json.tool --compact
    """
    from haptera.site.lint.schema import schema as made

    say(json.dumps(made(), indent=2, ensure_ascii=False))
