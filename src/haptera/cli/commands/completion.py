"""`haptera completion`: a script by which a shell asks what could be typed next."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from haptera.cli.input.bash import take_over_bash
from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched

# How a shell asks: click looks for this name.
VARIABLE: Final = "_HAPTERA_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@unwatched("its output never changes")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    r"""Print the completion script for a shell: commands, options, names of nodes.

    \b
    Examples:
      haptera completion bash > ~/.local/share/bash-completion/completions/haptera
      haptera completion zsh > ~/.zfunc/_haptera
      haptera completion fish > ~/.config/fish/completions/haptera.fish
    """
    take_over_bash()
    made = get_completion_class(shell)
    assert made is not None, "click knows it"
    say(made(ctx.find_root().command, {}, "haptera", VARIABLE).source(), nl=False)
