"""Completion for bash as haptera needs it: words hold `:`, `@` and `=`."""

import os
from typing import ClassVar

from click.shell_completion import BashComplete, add_completion_class, split_arg_string


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
