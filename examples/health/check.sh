#!/usr/bin/env bash
# Makes machines ill, each in its own way, and looks from outside at what is done about it.
#
#   examples/health/check.sh [DIRECTORY]     the directory that holds .haptera
#
# The machines' sensors are files in /mnt, their jobs write what they do to a file, and replicas are
# counted by their pid files and the kernel: that is judged. What haptera says is compared with it.
set -euo pipefail

directory=$(realpath "${1:-$(cd "$(dirname "$0")/../.." && pwd)}")
root=$directory/.haptera
effects=/mnt/effects
# A trend is seen after some three minutes, in which nothing else moves.
wait_s=480

# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"
nodes=(n1 n2 n3 n4 n5 n6 n7 n8)
care() { haptera get "health:$1" -o json 2>/dev/null | tr -d ' \n' | sed -n 's/.*"care":{"value":"\([a-z]*\)".*/\1/p'; }
grade() { haptera get "health:$1" -o json 2>/dev/null | tr -d ' \n' | sed -n 's/.*"grade":{"value":"\([a-z]*\)".*/\1/p'; }
is_in() { [[ $(care "$1") == "$2" ]]; }
began() { grep -c "^begin " "$effects" 2>/dev/null || true; }

# From now on, as fast as a machine falls ill; the loops end with this script.
started=()
trap 'kill "${started[@]}" 2>/dev/null || true' EXIT
put() { echo "$2" >"$1.new" && mv "$1.new" "$1"; }
heats() { local c; for ((c = 22; c < 120; c++)); do put "/mnt/$1/bmc/inlet" "$c"; sleep 10; done; }
jitters() { while true; do put "/mnt/$1/bmc/inlet" $((22 + RANDOM % 9)); sleep 5; done; }
corrupts() {
  local i file=/mnt/$1/sys/devices/system/edac/mc/mc0/dimm0/dimm_ce_count
  for ((i = 0; i < 120; i++)); do put "$file" $((i * i / 2)); sleep 10; done
}
fills() { local i; for ((i = 0; i < 110; i++)); do head -c 500K /dev/zero >"/mnt/$1/scratch/$i"; sleep 5; done; }
begins() { "$@" & started+=($!); }
celsius() { cat "/mnt/$1/bmc/inlet"; }
errors() { cat "/mnt/$1/sys/devices/system/edac/mc/mc0/dimm0/dimm_ce_count"; }
percent() { df --output=pcent "/mnt/$1/scratch" | tr -dc 0-9; }

# 1. A job on each node, and a group of three replicas.
: >"$effects" && chmod 666 "$effects"
rm -f /mnt/n*/end
count_all() { (($(replicas | wc -l) >= 3)); }
wait_for "three replicas run" count_all
command='echo begin $HAPTERA_JOB $HAPTERA_NODE >>/mnt/effects; until test -e /mnt/$HAPTERA_NODE/end; do sleep 1; done; echo end $HAPTERA_JOB $HAPTERA_NODE >>/mnt/effects'
submit() { # COUNT: prints the number of the first
  api POST /v1/jobs "{\"name\": \"work\", \"count\": $1, \"spec\": {
    \"command\": [\"bash\", \"-c\", \"$command\"], \"size\": {\"cpus\": 1, \"memory_mb\": 64}}}" |
    sed 's/.*"first":\([0-9]*\).*/\1/'
}
submit 8 >/dev/null
all_began() { (($(began) == 8)); }
wait_for "a job runs on each node" all_began
mapfile -t ill < <(replicas | sort -u)
mapfile -t others < <(printf '%s\n' "${nodes[@]}" "${ill[@]}" | sort | uniq -u)
hot=${ill[0]} corrupt=${ill[1]} full=${ill[2]} jumpy=${others[0]} last=${others[1]}
printf 'a job on each of 8 nodes, replicas on %s\n' "${ill[*]}"

# 2. Three fall ill, one only jitters. From here on no replica ends before another one runs.
while_waiting() { count_all || fail "$(replicas | wc -l) replicas run, on $(replicas | xargs)"; }
begins heats "$hot"
begins corrupts "$corrupt"
begins fills "$full"
begins jitters "$jumpy"
predicted() { # NODE WHAT NOW LIMIT: told before it is so
  wait_for "$1: spared" is_in "$1" spared
  local now
  now=$($3 "$1")
  ((now < $4)) || fail "$1 was spared when its $2 had met the limit: $now"
  [[ $(grade "$1") == predicted ]] || fail "$1 is $(grade "$1"), not predicted"
  printf '%s is predicted at %3d %s, of %d\n' "$1" "$now" "$2" "$4"
}
predicted "$hot" "degrees" celsius 70
predicted "$full" "percent" percent 95
predicted "$corrupt" "corrected errors" errors 600

# 3. Their replicas go first; their jobs run on, and no other begins there.
left() { [[ " $(replicas | xargs) " != *" $1 "* ]]; }
for node in "${ill[@]}"; do
  wait_for "$node: its replica runs elsewhere" left "$node"
  grep -q "^begin [0-9]* $node$" "$effects" || fail "no job runs on $node"
  ! grep -q "^end [0-9]* $node$" "$effects" || fail "the job on $node has ended"
  [[ $(duty "$node") == draining ]] || fail "$node is $(duty "$node")"
  is_in "$node" spared || fail "$node is $(care "$node") while a job is there"
done
printf 'replicas moved to %s; the jobs run on\n' "$(replicas | sort | xargs)"
submit 3 >/dev/null
for node in "${ill[@]}"; do touch "/mnt/$node/end"; done
for node in "${ill[@]}"; do wait_for "$node: out" is_in "$node" out; done
(($(began) == 8)) || fail "a job began on a node in care: $(tail -n 3 "$effects" | xargs)"
printf 'their jobs have ended, and they are out; nothing began there\n'

# 4. A fifth falls ill as well: the budget allows three.
begins fills "$last"
is_left() { [[ $(haptera get "health:$last" -o json 2>/dev/null) == *"left: 3 are in care"* ]]; }
wait_for "$last is predicted, and left" is_left
[[ -z $(care "$last") && $(duty "$last") != drain* ]] || fail "$last is in care, against the budget"
printf '%s is predicted too, and left as it is: the budget is three\n' "$last"

# 5. Whom nothing ails is in no care, and one that jitters neither.
for node in "${others[@]}"; do
  [[ -z $(care "$node") && $(duty "$node") != drain* ]] || fail "$node is in care"
done
[[ -z $(grade "$jumpy") ]] || fail "$jumpy jitters, and is $(grade "$jumpy")"
touch "/mnt/$jumpy/end"
begins_there() { (($(began) >= 9)); }
wait_for "a job begins on $jumpy" begins_there
printf '%s jitters, is well, and goes on working\n' "$jumpy"

# 6. It is told to whoever asks.
listed=$(haptera health) told=$(haptera why "node:$hot")
printf '%s\n' "$listed" "$told"
[[ $listed == *"$hot "*inlet-trend* ]] || fail "haptera health does not say why $hot is out"
[[ $told == *"health  inlet-trend (bmc.temp.inlet): predicted"* ]] || fail "why does not say it"
[[ $(haptera why "node:$jumpy") != *health* ]] || fail "why says that $jumpy is not well"
scores=$(haptera health scores)
printf '%s\n' "$scores"
# Whether it would have come, nobody knows of a machine that was spared.
[[ $scores =~ inlet-trend\ +0\ +0\ +1 ]] || fail "the prediction of $hot is not undecided"
for node in "${nodes[@]}"; do touch "/mnt/$node/end"; done
for log in "$root"/parent/serve.log "$root"/nodes/*/agent.log; do
  ! grep -q Traceback "$log" || fail "$log has a traceback"
done
echo "all held"
