#!/usr/bin/env bash
# Looks at the quickstart's cluster from outside, breaks it in four ways, and sees it heal.
#
#   examples/quickstart/check.sh [DIRECTORY]     the directory that holds .haptera
#
# It knows nothing of haptera's insides: it uses curl, ss, /proc, pid files and the BMCs' own records.
set -euo pipefail

root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}/.haptera
port=8080
wait_s=60
stuck=rack3n2
nodes=()
for rack in 1 2 3 4; do for n in 1 2 3 4; do nodes+=("rack${rack}n${n}"); done; done

# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"

bmc() { cat "$root/nodes/$1/bmc/address"; }
commands() { echo "$root/nodes/$1/bmc/commands.jsonl"; }
answers() { [[ $(curl -s -m 10 "http://$(address "$1"):$port/") == "$1" ]]; }
is_silent() { ! answers "$1"; }
# The process that listens there, by the kernel's own account.
listener() { ss -ltnpH "src $(address "$1"):$port" | sed -n 's/.*pid=\([0-9]*\).*/\1/p'; }
service_pid() { sed -n 's/^service \([0-9]*\) .*/\1/p' "$root/nodes/$1/run/services/web/state"; }

# Commands that BMCs accepted from haptera; those sent by hand, from here, are not its own.
actions() {
  cat "$root"/nodes/*/bmc/commands.jsonl | grep '"verdict":"accepted"' | grep -vc '"by-hand' || true
}

# broken NODE OLD_PID has healed when another process answers with the node's name
has_healed() { local pid; pid=$(listener "$1"); [[ -n $pid && $pid != "$2" ]] && answers "$1"; }

# healed WHAT SINCE_MS ACTIONS_BEFORE ACTIONS_DUE
healed() {
  local took=$(($(now_ms) - $2)) done_=$(($(actions) - $3))
  printf '%-38s healed in %d.%02d s, %d power actions\n' \
    "$1:" $((took / 1000)) $((took % 1000 / 10)) "$done_"
  ((done_ == $4)) || fail "$1: $done_ power actions instead of $4"
}

hand=0
by_hand() { # NODE on|off
  hand=$((hand + 1))
  curl -fsS -m 20 -o /dev/null -d "{\"power\":\"$2\",\"command\":\"by-hand-$hand\"}" \
    "http://$(bmc "$1")/power" || fail "the BMC of $1 refuses"
}

delay_ms() { curl -fsS -m 20 -o /dev/null -d "{\"delay_ms\":$2}" "http://$(bmc "$1")/faults"; }

# The commands of haptera's own, and their effects, after line FROM.
own() { tail -n "+$(($2 + 1))" "$(commands "$1")" | grep -v '"by-hand'; } # NODE FROM
was_sent() { own "$@" | awk '/"verdict":"accepted"/ {sent = 1} END {exit !sent}'; }
# One was accepted, and has had no effect yet.
in_flight() { own "$@" | awk '/"verdict":"accepted"/ {open = 1} /"effect"/ {open = 0} END {exit !open}'; }

# No BMC ever had two commands in flight, and between two of haptera's own its power was read.
check_records() {
  local node
  for node in "${nodes[@]}"; do
    awk -v node="$node" '
      /"verdict":"accepted"/ {
        if (open++) { print node ": two commands in flight"; bad = 1 }
        if (!/"by-hand/) {
          if (unread) { print node ": a command was sent again unread"; bad = 1 }
          unread = 1
        }
      }
      /"effect"/ { open-- }
      /"read"/ { unread = 0 }
      END { exit bad }
    ' "$(commands "$node")" || fail "the record of $node's BMC does not hold"
  done
}

check_all() {
  local node
  for node in "${nodes[@]}"; do
    if [[ $node == "$stuck" ]]; then
      is_silent "$node" || fail "$node answers, though its BMC refuses to start it"
    else
      wait_for "$node answers on $(address "$node"):$port" answers "$node"
    fi
  done
}

begun=$(now_ms)
for node in "${nodes[@]}"; do wait_for "there is a lab in $root" test -s "$root/nodes/$node/bmc/address"; done
check_all
[[ -z $(listener "$stuck") ]] || fail "something listens on $stuck"
grep -q '"verdict":"refused"' "$(commands "$stuck")" || fail "the BMC of $stuck was never asked"
! grep -q '"verdict":"accepted"' "$(commands "$stuck")" || fail "the BMC of $stuck took a command"
printf '15 nodes answer, %s does not (%d.%02d s, %d power actions)\n' "$stuck" \
  $((($(now_ms) - begun) / 1000)) $((($(now_ms) - begun) % 1000 / 10)) "$(actions)"

# 1. A service's process is killed.
node=rack1n1 before=$(actions)
pid=$(service_pid "$node")
[[ $pid == "$(listener "$node")" ]] || fail "$node: its state file does not name who listens"
since=$(now_ms)
kill -9 "$pid"
wait_for "$node serves again" has_healed "$node" "$pid"
healed "a service's process killed" "$since" "$before" 0

# 2. An agent is killed: its service goes on, and the next agent looks after it.
node=rack2n3 before=$(actions)
pid=$(service_pid "$node") agent=$(cat "$root/nodes/$node/agent.pid")
since=$(now_ms)
kill -9 "$agent"
wait_for "$node has an agent again" is_replaced "nodes/$node/agent.pid" "$agent"
[[ $(listener "$node") == "$pid" ]] && answers "$node" || fail "$node: its service died with its agent"
kill -9 "$pid"
wait_for "$node serves again" has_healed "$node" "$pid"
healed "an agent killed, then its service" "$since" "$before" 0

# 3. A rack loses its power.
before=$(actions)
rack=(rack4n1 rack4n2 rack4n3 rack4n4)
pids=()
for node in "${rack[@]}"; do pids+=("$(listener "$node")"); done
since=$(now_ms)
for node in "${rack[@]}"; do by_hand "$node" off; done
for pid in "${pids[@]}"; do wait_for "process $pid ends with its power" eval "! lives $pid"; done
for i in "${!rack[@]}"; do wait_for "${rack[i]} serves again" has_healed "${rack[i]}" "${pids[i]}"; done
healed "a rack's power cut" "$since" "$before" 4

# 4. The parent is killed between a command and its effect; on a busy machine that may take a few tries.
node=rack1n4
delay_ms "$node" 1200 # a wide window; well within the two seconds that its module declares
caught=
for _ in {1..10}; do
  before=$(actions) pid=$(listener "$node")
  lines=$(wc -l <"$(commands "$node")")
  since=$(now_ms)
  by_hand "$node" off
  wait_for "$node is sent a command" was_sent "$node" "$lines"
  if in_flight "$node" "$lines"; then
    parent=$(cat "$root/parent/parent.pid")
    kill -9 "$parent"
    in_flight "$node" "$lines" && caught=yes && break
  fi
  wait_for "$node serves again" has_healed "$node" "$pid"
done
[[ -n $caught ]] || fail "$node: each command took effect before the parent was killed"
wait_for "$node serves again" has_healed "$node" "$pid"
delay_ms "$node" 300
healed "the parent killed in mid chain" "$since" "$before" 1
wait_for "the parent runs again" is_replaced parent/parent.pid "$parent"

check_all
check_records
echo "all held"
