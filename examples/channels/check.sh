#!/usr/bin/env bash
# Kills what carries messages from a feed over a ledger to its readers, and reads what came through.
#
#   examples/channels/check.sh [DIRECTORY]     the directory that holds .haptera
#
# It knows nothing of haptera's insides: it reads what the readers write, /proc and the replicas' own
# pid files, and breaks things with kill and curl (to a BMC).
set -euo pipefail

root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}/.haptera
wait_s=90

more_picture() { tail -n 1 "$root"/shared/read/* /dev/null; ls -d "$root"/nodes/*/run/replicas/*; }
# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"

# The process of a group's rank that lives, or of any: its pid and its node.
process() { # GROUP [RANK]
  local state pid
  for state in "$root"/nodes/*/run/replicas/"$1".${2:-[0-9]}/state; do
    pid=$(sed -n 's/^service \([0-9]*\) .*/\1/p' "$state" 2>/dev/null) || continue
    if lives "$pid"; then
      state=${state#"$root/nodes/"}
      echo "$pid ${state%%/*}"
    fi
  done
}
leader_pid() { # the holder of the highest epoch
  cat "$root"/nodes/*/run/leases/ledger | grep held | sort -n | tail -n 1 | cut -d ' ' -f 2
}
# The newest file of a reader, and the entries that it has.
newest() { ls -t "$root"/shared/read/"$1".* 2>/dev/null | head -n 1; }
entries() { local file; file=$(newest "$1") && [[ -n $file ]] && wc -l <"$file"; }
both_read() { (($(entries 0) > $1 && $(entries 1) > $1)); }

# killed WHAT PID: entries come again at both readers
killed() {
  local before since
  before=$(entries 0) since=$(now_ms)
  kill -9 "$2"
  sleep 1
  wait_for "$1: entries come" both_read $((before + 200))
  printf '%-24s 200 entries more at both readers after %d ms\n' "$1:" $(($(now_ms) - since))
}

wait_for "entries come" both_read 200
printf 'a ledger of three replicas, %d entries read\n' "$(entries 0)"

killed "the leader killed" "$(leader_pid)"
killed "a sibling killed" "$(process ledger | awk -v leader="$(leader_pid)" '$1 != leader && !pid {pid = $1} END {print pid}')"
killed "the server killed" "$(pgrep -P "$(process streams | cut -d " " -f 1)")"
killed "the feed killed" "$(process feed | cut -d ' ' -f 1)"

before=$(entries 0) since=$(now_ms)
node=$(process ledger | awk -v leader="$(leader_pid)" '$1 == leader {print $2}')
curl -fsS -m 2 -o /dev/null -d '{"power":"off","command":"by-hand"}' \
  "http://$(cat "$root/nodes/$node/bmc/address")/power" || fail "the BMC of $node refuses"
wait_for "the leader's node off: entries come" both_read $((before + 200))
printf '%-24s 200 entries more at both readers after %d ms\n' "its node off:" $(($(now_ms) - since))

killed "a reader killed" "$(process reader 0 | cut -d ' ' -f 1)"
killed "the parent killed" "$(cat "$root/parent/parent.pid")"

# Each file of a reader has each entry once, in order, under epochs that only rise, and the same.
awk '
  FNR == 1 { number = 0; epoch = 0; files++ }
  $1 != number + 1 || $3 != number + 1 { print FILENAME ": entry " $3 " after " number; bad = 1 }
  $2 < epoch { print FILENAME ": epoch " $2 " after " epoch; bad = 1 }
  said[$1] && said[$1] != $0 { print FILENAME ": " $0 ", elsewhere " said[$1]; bad = 1 }
  { number = $1; epoch = $2; said[$1] = $0; if (number > most) most = number; epochs[epoch] = 1 }
  END { printf "%d entries under %d epochs in %d files, each once and in order\n", most, length(epochs), files; exit bad }
' "$root"/shared/read/* || fail "the entries do not hold"
echo "all held"
