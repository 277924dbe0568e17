#!/bin/sh
# What stands for ssh and the switch behind it: its words are joined and read again, as over SSH.
# Each port is a file of the folder beside this one, with `up` or `administratively down`.
ports=$(dirname "$0")/ports
[ "$1 $2" = "-o BatchMode=yes" ] || { echo "unknown options" >&2; exit 255; }
shift 3
eval "set -- $*"
port=$ports/$3
[ -e "$port" ] || { echo "% Invalid input: $3"; exit 1; }
case "$1 $2 $4 $5" in
"show interfaces  ") echo "$3 is $(cat "$port"), line protocol is down" ;;
"configure interface no shutdown") echo up >"$port" ;;
"configure interface shutdown ") echo "administratively down" >"$port" ;;
*) echo "% Invalid input: $*" >&2; exit 1 ;;
esac
