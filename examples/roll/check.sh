#!/usr/bin/env bash
# Looks at four nodes from outside while they are rolled to other images, good ones and bad ones.
#
#   examples/roll/check.sh [DIRECTORY]     the directory that holds .haptera
#
# It looks with curl, /proc and the clock; haptera it only tells what should be, as a person would.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=${1:-$(cd "$here/../.." && pwd)}/.haptera
port=8090
wait_s=400
job_s=30
nodes=(n1 n2 n3 n4)

more_on_failure() { haptera roll status; }
# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"
now_s() { echo "${EPOCHSECONDS}"; }
image_of() { local said; said=$(curl -s -m 1 "http://$(address "$1"):$port/"); echo "${said%% *}"; }
runs() { [[ $(image_of "$1") == "$2" ]]; } # NODE IMAGE
all_run() { local node; for node in "${nodes[@]}"; do runs "$node" "$1" || return 1; done; }
started() { cat "$root/nodes/$1/run/systems/compute/started.json"; }

# watch_nodes: notes again and again how many nodes answer, until it is ended.
watch_nodes() {
  local node answering
  while :; do
    answering=0
    for node in "${nodes[@]}"; do [[ -z $(image_of "$node") ]] || answering=$((answering + 1)); done
    echo "$answering"
  done
}

built() { [[ $(haptera image list -o name | wc -l) == 4 ]] && haptera image show "$1" | grep -q sha256; }
for image in a b c d; do wait_for "image $image is built" built "$image"; done
wait_for "all nodes run a" all_run a
echo "four nodes run a"

# A job on n1, then all to b: the others roll one by one, n1 once its job is over.
job_begun=$(now_s) # before it, so that whatever comes after its end comes so much later
curl -fsS -m 2 -o /dev/null -X POST "http://$(address n1):$port/jobs/$job_s" || fail "no job began"
job() { pgrep -f "^sleep $job_s\$" | head -n 1; }
wait_for "the job runs" job >/dev/null
job_pid=$(job)
watch_nodes >"$root/answering" 2>/dev/null &
watching=$!
haptera roll 'system:compute@n[1-4]' --image b --max-unavailable 1 --take --no-wait
others_run_b() { runs n2 b && runs n3 b && runs n4 b; }
wait_for "n2 to n4 run b" others_run_b
[[ -e /proc/$job_pid ]] || fail "n2 to n4 took longer than the job's $job_s s: nothing is shown"
runs n1 a || fail "n1 does not run a, though its job runs"
wait_for "n1 runs b" runs n1 b
(($(now_s) - job_begun >= job_s)) || fail "n1 rolled within its job's $job_s s"
is_done() { haptera roll status b | grep -q ' done '; }
wait_for "the roll is done" is_done
kill "$watching"
least=$(sort -n "$root/answering" | head -n 1)
((least >= 3)) || fail "at one time only $least of 4 nodes answered, with --max-unavailable 1"
# The record tells the same: what n1 waited for, and that none was refused.
told() { haptera roll timeline b -o json | tee "$root/roll.json" | tr -d ' \n'; }
n1_waited() { told | grep -q '"entity":"system:compute@n1",[^]]*"waiting"[^]]*1jobruns[^]]*"changing"[^]]*"new"[^]]*\]'; }
wait_for "the timeline tells what n1 waited for" n1_waited # it is written a moment later
haptera roll timeline b -o svg >"$root/roll.svg"
if told | grep -q '"refused"'; then fail "the timeline has a refused image: $(cat "$root/roll.json")"; fi
echo "rolled to b: never fewer than $least of 4 answered, and n1 waited for its job"

# Two bad images: each is tried on one node, goes back by itself, and reaches no other. A node
# permits three flips an hour: each is tried on another.
for bad in 'c n[1-4] no configuration' 'd n[2-4] it is not healthy'; do
  read -r image on words <<<"$bad"
  declare -A init=()
  for node in "${nodes[@]}"; do init[$node]=$(started "$node"); done
  if haptera roll "system:compute@$on" --image "$image" --max-unavailable 1 \
    --health "sh -c 'test \$(cat /etc/image) != d'" >"$root/said" 2>&1; then
    fail "the roll to $image is done"
  fi
  grep -q 'it is halted: system:compute@' "$root/said" || fail "the roll did not halt: $(cat "$root/said")"
  says_why() { haptera why | grep -q "^roll:$image is stuck .*: halted: system:compute@n[1-4]: .*$words"; }
  wait_for "why says why the roll to $image halted" says_why
  wait_for "all nodes run b" all_run b
  touched=0
  for node in "${nodes[@]}"; do [[ ${init[$node]} == "$(started "$node")" ]] || touched=$((touched + 1)); done
  ((touched == 1)) || fail "image $image reached $touched nodes"
  haptera roll rm "$image"
  echo "image $image reached one node, which runs b again: $(grep -o 'halted: .*' "$root/said" | head -n 1)"
done

# The parent is killed in mid roll, and goes on where it was.
haptera roll 'system:compute@n[3-4]' --image a --max-unavailable 1 --no-wait
wait_for "n3 runs a" runs n3 a
kill -9 "$(cat "$root/parent/parent.pid")"
wait_for "n4 runs a" runs n4 a
finished() { haptera roll status a | grep -q ' done '; }
wait_for "the roll is done" finished
echo "a parent that was killed in mid roll went on with it"

# A rehearsal of that roll, from the state before it, has the same nodes in the same order.
compared() { haptera rehearse compare a --runs 20 -o json >"$root/compared.json" && tr -d ' \n' <"$root/compared.json"; }
alike() { compared | grep -q '"same_order":1.0,'; }
wait_for "the rehearsal is compared with the roll" alike # the record is written a moment later
changed='"name":"systemschanged","happened":2,"rehearsed":{"least":2,"median":2,"p90":2,"most":2}'
tr -d ' \n' <"$root/compared.json" | grep -qF "$changed" || fail "not two systems: $(cat "$root/compared.json")"
haptera rehearse compare a --runs 20

# And back, with nothing to fetch.
haptera roll undo a
wait_for "all nodes run b" all_run b
echo "undone: all nodes run b again"
echo "all held"
