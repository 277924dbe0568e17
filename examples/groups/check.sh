#!/usr/bin/env bash
# Breaks the leader of a group in every way, and reads in its effects that it never had two.
#
#   examples/groups/check.sh [DIRECTORY]     the directory that holds .haptera
#
# It knows nothing of haptera's insides: it reads the file that the leaders write to, /proc and the
# replicas' own pid files, and breaks things with kill, curl (to a BMC) and a packet filter.
set -euo pipefail

root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}/.haptera
effects=$root/shared/effects
wait_s=60
# The fault groups of each node, as site.yaml has them.
declare -A groups=([n1]="r1 p1" [n2]="r1 p2" [n3]="r2 p2" [n4]="r2 p3" [n5]="r3 p3" [n6]="r4 p4 p5")

more_picture() { replicas; epoch; }
# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"

# The last line: when (ns), epoch, rank, node, placement.start, pid, its number.
last() { tail -n 1 "$effects"; }
epoch() { last | cut -d ' ' -f 2; }
leader() { last | cut -d ' ' -f 4; }
leader_pid() { last | cut -d ' ' -f 6; }

# Whether three run, on nodes that share no rack and no power strip; those on NODE do not count.
# Where a sibling has to move so that all are apart, its replacement runs before it ends.
three_apart() { # [NODE]
  local nodes all
  mapfile -t nodes < <(replicas | grep -vx "${1:-none}")
  ((${#nodes[@]} == 3)) || return 1
  all=$(for node in "${nodes[@]}"; do printf '%s\n' ${groups[$node]}; done)
  [[ -z $(sort <<<"$all" | uniq -d) ]]
}

leads_after() { (($(epoch) > $1)); }
silent_ms() { # EPOCH: from its last effect to the first of the next one
  awk -v old="$1" '$2 == old {last = $1} $2 > old {printf "%d", ($1 - last) / 1e6; exit}' "$effects"
}

# healed WHAT EPOCH NODE SINCE_MS: another epoch leads, and three run apart, none of them on NODE
healed() {
  local took
  wait_for "$1: another epoch" leads_after "$2"
  wait_for "$1: three replicas apart" three_apart "$3"
  took=$(($(now_ms) - $4))
  printf '%-24s epoch %d leads on %s, %d ms after the last effect of %d; replaced in %d.%02d s\n' "$1:" \
    "$(epoch)" "$(leader)" "$(silent_ms "$2")" "$2" \
    $((took / 1000)) $((took % 1000 / 10))
}

# No epoch acts once a later one has, and each one's effects have a single author.
check_effects() {
  awk '
    $2 < highest { print "epoch " $2 " acted after " highest; bad = 1 }
    $2 > highest { highest = $2; author = $6; number = 0 }
    $6 != author { print "epoch " $2 " has two authors: " author " and " $6; bad = 1 }
    $7 <= number { print "effect " $7 " of epoch " $2 " is there twice"; bad = 1 }
    { number = $7 }
    END { exit bad }
  ' "$effects" || fail "the effects do not hold"
}

wait_for "there are effects" test -s "$effects"
wait_for "three replicas apart" three_apart none
printf 'three replicas on %s, led from %s under epoch %d\n' \
  "$(replicas | sort | tr '\n' ' ' | sed 's/ $//')" "$(leader)" "$(epoch)"

# 1. The leader's process is killed.
old=$(epoch) since=$(now_ms)
kill -9 "$(leader_pid)"
healed "process killed" "$old" none "$since"

# 2. The leader's node loses its power.
old=$(epoch) node=$(leader) pid=$(leader_pid) since=$(now_ms)
curl -fsS -m 2 -o /dev/null -d '{"power":"off","command":"by-hand"}' \
  "http://$(cat "$root/nodes/$node/bmc/address")/power" || fail "the BMC of $node refuses"
wait_for "the leader ends with its power" eval "! lives $pid"
healed "power cut" "$old" "$node" "$since"

# 3. The leader's node is cut off: it goes on, and nobody can ask it to stop.
old=$(epoch) node=$(leader) pid=$(leader_pid) since=$(now_ms)
address=$(cat "$root/nodes/$node/address")
nft "add table ip cut; add chain ip cut in { type filter hook input priority 0; };
  add rule ip cut in ip saddr $address drop; add rule ip cut in ip daddr $address drop"
healed "network cut" "$old" "$node" "$since"
lives "$pid" || fail "the old leader does not live: it was to stop leading by itself"
lines=$(grep -c " $pid " "$effects")
nft delete table ip cut
is_stopped() { ! lives "$pid"; }
wait_for "the old leader is stopped once it is reached" is_stopped
[[ $(grep -c " $pid " "$effects") == "$lines" ]] || fail "the old leader acted again"
wait_for "three replicas apart" three_apart none

# 4. All of the leader's node stops in the middle of whatever it does, and goes on later.
tree() { local child; echo "$1"; for child in $(pgrep -P "$1" || true); do tree "$child"; done; }
old=$(epoch) node=$(leader) pid=$(leader_pid) since=$(now_ms)
mapfile -t frozen < <(tree "$(cat "$root/nodes/$node/init.pid")")
kill -STOP "${frozen[@]}" 2>/dev/null || true # what has ended meanwhile
healed "node frozen" "$old" "$node" "$since"
lines=$(grep -c " $pid " "$effects")
kill -CONT "${frozen[@]}" 2>/dev/null || true
wait_for "the old leader is stopped once it goes on" is_stopped
[[ $(grep -c " $pid " "$effects") == "$lines" ]] || fail "the old leader acted after it was thawed"
wait_for "three replicas apart" three_apart none

# 5. The agent of the leader's node, then the parent, is killed: nothing of the group notices.
pids() { cat "$root"/nodes/*/run/replicas/*/state | sed -n 's/^service \([0-9]*\) .*/\1/p' | sort -n; }
acts_on() { (($(last | cut -d ' ' -f 7) > $1)); }
for killed in "nodes/$(leader)/agent.pid" parent/parent.pid; do
  old=$(epoch) before=$(pids) pid=$(cat "$root/$killed")
  kill -9 "$pid"
  wait_for "there is another of $killed" is_replaced "$killed" "$pid"
  # Longer than a lease lasts, so that it has been moved on by the new process.
  number=$(last | cut -d ' ' -f 7) until_ms=$(($(now_ms) + 5000))
  while (($(now_ms) < until_ms)); do sleep 0.1; done
  wait_for "the leader goes on" acts_on "$number"
  [[ $(epoch) == "$old" ]] || fail "$killed was killed, and another epoch began"
  [[ $(pids) == "$before" ]] || fail "$killed was killed, and replicas were started or ended"
  printf '%-24s epoch %d goes on, no replica was started or ended\n' "${killed##*/} killed:" "$old"
done

# 6. A person has another rank lead, then gives it back.
old=$(epoch) rank=$((($(last | cut -d ' ' -f 3) + 1) % 3))
haptera set group:ledger "lead=$rank" >/dev/null
wait_for "rank $rank leads" leads_after "$old"
[[ $(last | cut -d ' ' -f 3) == "$rank" ]] || fail "another rank than $rank leads"
printf '%-24s rank %d leads under epoch %d, %d ms after the last effect of %d\n' \
  "set by hand:" "$rank" "$(epoch)" "$(silent_ms "$old")" "$old"

check_effects
printf '%d effects under %d epochs, none out of order\n' \
  "$(wc -l <"$effects")" "$(cut -d ' ' -f 2 "$effects" | sort -u | wc -l)"
echo "all held"
