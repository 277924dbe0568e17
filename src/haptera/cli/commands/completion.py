"""`haptera completion`: a script by which a shell asks what could be typed next."""

import os
from typing import ClassVar, Final

import click
from click.shell_completion import (
    BashComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

# How a shell asks: click looks for this name.
VARIABLE: Final = "_HAPTERA_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish")


class Bash(BashComplete):
    """Completion for bash, which takes `service:web@n1` and `power=on` for several words.

    So it is handed the line as it was typed, and of each answer loses what it thinks is complete.
    """

    name: ClassVar[str] = "bash"
    source_template: ClassVar[str] = """\
%(complete_func)s() {
    local line=${COMP_LINE:0:COMP_POINT} kind answer
    local word=${line##*[[:space:]]} breaks=${COMP_WORDBREAKS//[^:=@]/} done=
    if [[ -n $breaks && $word == *[$breaks]* ]]; then
        done=${word%%"${word##*[$breaks]}"}
    fi
    COMPREPLY=()
    while IFS=, read -r kind answer; do
        case $kind in
            file) compopt -o default; COMPREPLY=(); return ;;
            dir) compopt -o dirnames; COMPREPLY=(); return ;;
            plain) COMPREPLY+=("${answer#"$done"}") ;;
        esac
    done < <(HAPTERA_LINE=$line %(complete_var)s=bash_complete "$1" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:=] ]]; then
        compopt -o nospace
    fi
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("HAPTERA_LINE", "")
        words = split_arg_string(line)
        if not line or line[-1].isspace():
            words.append("")
        return words[1:-1], words[-1]


def take_over_bash() -> None:
    """Have click complete for bash as above."""
    add_completion_class(Bash)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    r"""Write what a shell needs to complete commands, options, names of nodes and variables.

    \b
    Examples:
      haptera completion bash > ~/.local/share/bash-completion/completions/haptera
      haptera completion zsh > ~/.zfunc/_haptera
      haptera completion fish > ~/.config/fish/completions/haptera.fish
    """
    take_over_bash()
    made = get_completion_class(shell)
    assert made is not None, "click knows it"
    click.echo(made(ctx.find_root().command, {}, "haptera", VARIABLE).source(), nl=False)
