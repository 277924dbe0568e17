#!/usr/bin/env bash
# Has 20 jobs run in an image, kills what runs them, and looks at what is left from outside.
#
#   examples/containers/check.sh [DIRECTORY]     the directory that holds .haptera
#
# It looks at a log of effects, /proc and loop devices; haptera it only tells what should be.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath "${1:-$here/../..}")/.haptera
wait_s=120

# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"
# Jobs are a user without rights: they write where everybody may.
effects=$(mktemp -d --suffix=.effects)
chmod 777 "$effects"
trap 'rm -rf "$effects"' EXIT

# submit OPTION...: a job that says who it is, and sleeps
in_image() { haptera submit --image tools --mount "$effects:/effects:rw" --folder /effects "$@"; }
begins='echo "$HAPTERA_JOB $HAPTERA_JOB_TOKEN $HAPTERA_NODE" >>$HAPTERA_JOB_NAME'
lines() { cat "$effects/$1" 2>/dev/null | wc -l; }
has_lines() { (($(lines "$1") >= $2)); }
# What jobs have mounted, in whichever namespace: a root each, beside the image that all share.
roots() { cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -c " $root/nodes/.*/container/root " || true; }
loops() { losetup -n -O BACK-FILE | grep -c "$root/nodes/$1/" || true; }
groups_left() {
  local key
  for key in "$root"/nodes/n*/run/queue/*; do
    find /sys/fs/cgroup -type d -name "${key##*/}-$(printf %s "$key" | sha256sum | cut -c 1-8)"
  done
}
is_clean() { [[ $(roots) == 0 && -z $(groups_left) ]] && ! pgrep -f "^runc .*$root/nodes" >/dev/null; }

nodes_ready() { [[ $(haptera queue -o json | grep -o '"duty": *"idle"' | wc -l) == 2 ]]; }
wait_for "two nodes ask for work" nodes_ready
is_built() { haptera get image:tools -o json | grep -q '"condition": *"converged"'; }
wait_for "the image is made" is_built
began=$(now_ms)
in_image --array 20 --name twenty --wait -- sh -c "$begins; id -u" >/dev/null || fail "not all of 20 jobs ended well"
took=$(($(now_ms) - began))
[[ $(lines twenty) == 20 && $(cut -d ' ' -f 2 "$effects/twenty" | sort -u | wc -l) == 20 ]] || fail "not each ran once"
[[ $(stat -c %u "$effects/twenty") != 0 ]] || fail "root of the image is root outside"
(($(loops n1) <= 1 && $(loops n2) <= 1)) || fail "an image is mounted more than once on a node"
wait_for "nothing is left of them" is_clean
printf '20 jobs ran in an image, once each, on %s (%d ms)\n' "$(cut -d ' ' -f 3 "$effects/twenty" | sort | uniq -c | xargs)" "$took"

# An image that is not there: its job waits and says so, blocks nobody, and runs once it is.
haptera image import later "$here/root.tar" >/dev/null
haptera image rm later >/dev/null
waiting=$(haptera submit --image later -- id -u)
haptera why "$waiting" | grep -q "there is no image 'later' here yet" || fail "why: $(haptera why "$waiting")"
in_image --name beside --wait -- sh -c "$begins" >/dev/null || fail "a job that waits blocks another"
haptera image import later "$here/root.tar" >/dev/null
is_complete() { haptera jobs "$1" -o json | grep -q '"state": *"complete"'; }
wait_for "the job runs in what came later" is_complete "$waiting"
echo "a job waits for its image, blocks nobody, and says so"

# The agent is killed: the job goes on, and its end is told by the next one.
in_image --name survivor -- sh -c "$begins; sleep 3" >/dev/null
wait_for "the job begins" has_lines survivor 1
node=$(cut -d ' ' -f 3 "$effects/survivor")
kill -9 "$(cat "$root/nodes/$node/agent.pid")"
wait_for "the job ends well" is_complete "job:$(cut -d ' ' -f 1 "$effects/survivor")"
[[ $(lines survivor) == 1 ]] || fail "it ran $(lines survivor) times"
wait_for "nothing is left of it" is_clean
echo "an agent that is killed costs the job nothing"

# The runtime is killed: so is the job, all of it.
in_image --name victim -- sh -c "$begins; sleep 1000 & sleep 1000" >/dev/null
wait_for "the job begins" has_lines victim 1
pkill -9 -f "^runc .*$root/nodes" || fail "no runtime runs"
is_failed() { haptera jobs "$1" -o json | grep -q '"state": *"failed"'; }
wait_for "the job has failed" is_failed "job:$(cut -d ' ' -f 1 "$effects/victim")"
wait_for "nothing is left of it" is_clean
echo "a runtime that is killed leaves nothing of the job"

# A node loses its power: the other one has the job, and the first one keeps nothing of it.
in_image --name moved --retry lost -- sh -c "$begins; sleep 2" >/dev/null
wait_for "the job begins" has_lines moved 1
node=$(cut -d ' ' -f 3 "$effects/moved")
haptera hold "$node" -m "it loses its power" >/dev/null
curl -fsS -m 2 -o /dev/null -d '{"power":"off","command":"by-hand"}' \
  "http://$(cat "$root/nodes/$node/bmc/address")/power" || fail "the BMC of $node refuses"
wait_for "the other node runs it" is_complete "job:$(head -n 1 "$effects/moved" | cut -d ' ' -f 1)"
haptera undrain "$node" >/dev/null
[[ $(lines moved) == 2 && $(cut -d ' ' -f 2 "$effects/moved" | sort -u | wc -l) == 2 ]] || fail "a token ran twice"
wait_for "nothing is left of it" is_clean
wait_for "both nodes ask for work again" nodes_ready
echo "a node whose power is cut gives its job to the other"
echo "all held"
