#!/usr/bin/env bash
# Looks at the platform from outside: its appliances boot, an update goes through them two at a time,
# one that fails is rolled back, and haptera says in the platform's words why.
#
#   examples/platform/check.sh [DIRECTORY]     the directory that holds .haptera
#
# What the appliances are, the platform says, and its log, which it writes when something changes.
set -euo pipefail

directory=$(realpath "${1:-$(cd "$(dirname "$0")/../.." && pwd)}")
here=$(realpath "$(dirname "$0")")
root=$directory/.haptera
log=$directory/platform.log
wait_s=60

# shellcheck source=tools/checking.sh
source "$here/../../tools/checking.sh"

platform() { curl -sSf -m 10 "http://127.0.0.1:8470$1" "${@:2}"; }
# The last state of an appliance and its version, by the log.
is() { [[ $(awk -v name="$1" '$2 == name && $3 != "asked" { print $3, $4 }' "$log" | tail -1) == "$2" ]]; }
all_serve() { for n in "${@:2}"; do is "a$n" "SERVING $1" || return 1; done; }
asked() { grep -c " $1 asked $2" "$log" || true; }
why() { haptera why "appliance:$1" || true; }
quoted() { why "$1" | grep -q "$2"; }

wait_for "seven appliances serve" all_serve 1.0 1 2 3 4 5 6 7
echo "seven appliances were booted over the platform's API, as the site file declares it"

# 1. A bad image on one of them: the others are updated, two at a time, and this one is rolled back.
platform /faults -d '{"bad": ["a3"]}' >/dev/null
before=$(wc -l <"$log")
sed 's/version: "1.0"/version: "2.0"/' "$here/site.yaml" >"$directory/next.yaml"
haptera apply "$directory/next.yaml" >/dev/null
wait_for "six are updated" all_serve 2.0 1 2 4 5 6 7
rolled_back() { (($(asked a3 rollback) > 0)) && is a3 "SERVING 1.0" && quoted a3 "again  in [23][0-9] min"; }
wait_for "the bad one is rolled back, and given up" rolled_back
most=$(tail -n +$((before + 1)) "$log" | awk '
  $3 == "asked" || $2 == "a8" { next }
  { if ($3 == "SERVING") delete away[$2]; else away[$2] = 1
    if (length(away) > most) most = length(away) }
  END { print most }')
((most == 2)) || fail "$most were away at once, and the budget allows 2"
wait_for "why quotes the platform" quoted a3 "checksum of layer 3 is wrong"
why a3
tried=$(asked a3 update)
((tried <= 2)) || fail "a3 was updated $tried times, and its policy says 2"
echo "six were updated, never more than two away; the bad one serves its old version again"

# 2. What halts is updated too: booted, updated, halted.
wait_for "the one that is to be halted has the version" is a8 "HALTED 2.0"

# 3. The image is mended: a person has it tried again.
platform /faults -d '{"bad": []}' >/dev/null
haptera retry appliance:a3 >/dev/null
wait_for "the bad one is updated" is a3 "SERVING 2.0"
echo "once the platform is mended, retry updates it"

# 4. Its token is in no log, no state and no process's words.
token=$(cut -d ' ' -f 5 "$directory/platform.curl" | tr -d '"')
! cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -qF -f <(echo "$token") || fail "the token is in a process list"
! grep -rqsF -f <(echo "$token") "$root/parent/log" "$root/parent/state.db" "$log" || fail "the token is in a log or in the state"
echo "all held"
