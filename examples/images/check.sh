#!/usr/bin/env bash
# Looks at the nodes of the images demo from outside while they roll from one image to the other.
#
#   examples/images/check.sh [DIRECTORY]     the directory that holds .haptera
#
# It looks with curl, /proc and the clock; haptera it only tells what should be, as a person would.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=${1:-$(cd "$here/../.." && pwd)}/.haptera
port=8090
wait_s=240
job_s=8
outage_ms_max=1000

# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"
ask() { curl -s -m 1 "http://$(address "$1"):$port/"; }
runs() { [[ $(ask "$1") == "$2 on $1" ]]; } # NODE IMAGE
# The system's init, as the runtime wrote it down; and whether that very process lives.
init_of() { sed 's/.*"pid":\([0-9]*\).*/\1/' "$root/nodes/$1/run/systems/compute/started.json"; }
why() { haptera why "system:compute@$1"; }

# outage NODE FROM TO: from the last answer of the old system to the first of the new one, in ms
outage() {
  local node=$1 at last=0 until_ms=$(($(now_ms) + wait_s * 1000)) said place
  place=http://$(address "$node"):$port/
  while at=$(now_ms) && ((at < until_ms)); do
    said=$(curl -s -m 1 "$place" || true)
    case $said in
      "$2 on $node") last=$(now_ms) ;;
      "$3 on $node") echo $(($(now_ms) - last)); return ;;
    esac
  done
  return 1
}

begun=$(now_ms)
for node in n1 n2; do wait_for "$node runs debian-a" runs "$node" debian-a; done
printf 'both nodes run debian-a, built here (%d s)\n' $((($(now_ms) - begun) / 1000))

# It is a container of its own: another root, its own processes, and of haptera the gate alone.
init=$(init_of n1)
lives "$init" || fail "the init of n1 that is written down does not live"
[[ $(awk '$5 == "/" {sub(/.* - /, ""); print $1}' "/proc/$init/mountinfo") == overlay ]] ||
  fail "the root of n1's system is no overlay"
[[ $(readlink "/proc/$init/ns/pid") != $(readlink /proc/self/ns/pid) ]] || fail "no pid namespace"
[[ $(ls "/proc/$init/root/run/haptera" | xargs) == "init jobs" ]] || fail "more than the gate is in the system"

# Commands on the node and in the system: their own status, nothing of haptera's left open, and
# ended with whoever waits for them.
[[ $(haptera exec n1 -- printenv HAPTERA_NODE) == n1 ]] || fail "no command runs on n1"
[[ $(haptera exec n1/compute -- cat /etc/image) == debian-a ]] || fail "none runs in its system"
[[ $(printf 'a\0b' | haptera exec -i n1/compute -- od -An -c | tr -d ' ') == 'a\0b' ]] ||
  fail "what is sent to a command in n1's system does not arrive"
status=0
haptera exec n1/compute -- no-such-command 2>/dev/null || status=$?
((status == 127)) || fail "a command that is not there ended with $status"
haptera exec n1/compute -- sh -c 'exit 37' || status=$?
((status == 37)) || fail "exit 37 came back as $status"
[[ $(haptera exec n1/compute -- ls /run/haptera | xargs) == "init jobs" ]] || fail "a command sees more than the gate"
opened=$(haptera exec n1/compute -- ls -l /proc/self/fd)
! grep -qE 'socket:|haptera' <<<"$opened" || fail "a command in n1's system has open: $opened"
"$here/../../.venv/bin/haptera" --client "$root/client.json" exec n1/compute -- sleep 7654 &
sleeping=$!
sleeps() { pgrep -f '^sleep 7654$' >/dev/null; }
wait_for "a command sleeps in n1's system" sleeps
kill "$sleeping"
is_over() { ! sleeps; }
wait_for "it is ended with haptera exec" is_over
audit=$(haptera history --audit -o json)
grep -qF 'exec system:compute@n1 [\"sleep\",\"7654\"]' <<<"$audit" ||
  fail "the audit does not have what was executed"
echo "commands run on the node and in its system, and end with who waits for them"

# The system shares its node's network, so it reaches haptera's ports; they want a token or a key.
api=$(sed 's/.*"url": *"\([^"]*\)".*/\1/' "$root/client.json")
[[ $(curl -s -o /dev/null -w '%{http_code}' "$api/v1/entities") == 401 ]] ||
  fail "the API answers without a token"
host=${api#*//}
! curl -ks -m 2 -o /dev/null "https://${host%:*}:4272/images/debian-a" ||
  fail "an image is served to somebody without a certificate"

# A job on n1, then the other image for both: n2 rolls, n1 waits for the job.
curl -fsS -m 2 -o /dev/null -X POST "http://$(address n1):$port/jobs/$job_s" || fail "no job began"
job_begun=$(now_ms)
job() { pgrep -f "^sleep $job_s\$" | head -n 1; }
wait_for "the job runs" job >/dev/null
job_pid=$(job)
outage n2 debian-a debian-b >"$root/outage" &
haptera apply "$here/next.yaml" >/dev/null
wait "$!" || fail "n2 does not run debian-b"
outages=("$(cat "$root/outage")")
lives "$job_pid" || fail "the job on n1 did not outlive the roll of n2"
runs n1 debian-a || fail "n1 does not run debian-a, though its job runs"
says_why() { why n1 | grep -q "1 job runs .*sleep $job_s"; }
wait_for "why names the job" says_why
why n1 | grep -o '1 job runs.*' | head -n 1
wait_for "n1 runs debian-b" runs n1 debian-b
job_took=$(($(now_ms) - job_begun))
((job_took >= job_s * 1000)) || fail "n1 rolled after $job_took ms, within the job's $job_s s"
! lives "$job_pid" || fail "n1 rolled while its job ran"
lives "$init" && fail "the old init lives on"
printf 'n2 rolled at once, n1 %d ms after its job had ended\n' $((job_took - job_s * 1000))

# Back and forth on free nodes: how long nobody answers. A node is flipped three times an hour at most.
for node in n2 n1; do
  from=debian-b to=debian-a
  for _ in 1 2; do
    outage "$node" "$from" "$to" >"$root/outage" &
    haptera set "system:compute@$node" "image=$to" --take >/dev/null
    wait "$!" || fail "$node never answered as $to"
    outages+=("$(cat "$root/outage")")
    swap=$from from=$to to=$swap
  done
done
flips=${#outages[@]}
sorted=($(printf '%s\n' "${outages[@]}" | sort -n))
p50=${sorted[$((flips / 2))]}
printf '%d flips: nobody answered for %d to %d ms, p50 %d ms\n' \
  "$flips" "${sorted[0]}" "${sorted[-1]}" "$p50"
((p50 < outage_ms_max)) || fail "p50 of the outages is $p50 ms"

# A system whose init is killed is started again.
init=$(init_of n2)
kill -9 "$init"
is_back() { [[ $(init_of n2) != "$init" ]] && runs n2 debian-b; }
wait_for "n2's system runs again" is_back
echo "a killed init is started again"

# An agent that is killed leaves its system alone, and its successor looks after it.
init=$(init_of n1)
agent=$(cat "$root/nodes/n1/agent.pid")
kill -9 "$agent"
wait_for "n1 has an agent again" is_replaced nodes/n1/agent.pid "$agent"
lives "$init" && runs n1 debian-b || fail "n1's system died with its agent"
kill -9 "$init"
is_back() { [[ $(init_of n1) != "$init" ]] && runs n1 debian-b; }
wait_for "n1's system runs again" is_back
echo "a killed agent cost nothing, and the next one heals"

# A node that loses its power loses all of it, mounts and loop devices too, and comes back.
init=$(init_of n1)
loops() { losetup -n -O BACK-FILE | grep -c "$root/nodes/n1/" || true; }
(($(loops) > 0)) || fail "no loop device holds an image of n1"
curl -fsS -m 2 -o /dev/null -d '{"power":"off","command":"by-hand"}' \
  "http://$(cat "$root/nodes/n1/bmc/address")/power" || fail "the BMC of n1 refuses"
is_dark() { ! lives "$init"; }
wait_for "n1 is off" is_dark
wait_for "n1 runs debian-b again" runs n1 debian-b
(($(loops) == 1)) || fail "n1 holds $(loops) loop devices after its boot, not 1"
echo "a node whose power was cut fetches its image again and runs it"
echo "all held"
