#!/usr/bin/env bash
# Has a pool grow from nothing and go back to nothing, with a cloud that refuses, hangs and forgets.
#
#   examples/pools/check.sh [DIRECTORY]     the directory that holds .haptera
#
# What there is, the cloud's own list says, and /proc; what ran, the jobs' log of effects. Of haptera
# it uses the API alone, with curl.
set -euo pipefail

directory=$(realpath "${1:-$(cd "$(dirname "$0")/../.." && pwd)}")
root=$directory/.haptera
# A job that says no user has no rights: it writes where everybody may.
effects=$(mktemp --suffix=.effects)
chmod 666 "$effects"
trap 'rm -f "$effects"' EXIT
wait_s=90
most=6

# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"
net=$(sed 's/.*"url":"http:..\(127\.[0-9]*\)\.0\.1:.*/\1/' "$root/client.json")
cloud=http://$net.0.2:4281

# The pool is never too large.
while_waiting() { (($(ours) <= most)) || fail "$(ours) instances are more than $most"; }
more_picture() { instances; cat "$effects"; }

instances() { curl -sf -m 5 "$cloud/instances"; }
ours() { instances | grep -o '"owner":"haptera-' | wc -l; }
sizes() { instances | grep -o '"size":"[a-z]*"' | sort | uniq -c | sed 's/"size":"\(.*\)"/\1/' | xargs; }
faults() { curl -sf -m 5 -o /dev/null -d "$1" "$cloud/faults"; }
# The processes of the pool's nodes, by the kernel's own account.
processes() { cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^chassis burst' || true; }

# submit NAME CPUS COUNT SECONDS: prints the number of the first
submit() {
  local script="echo said on \$HAPTERA_NODE; echo begin \$HAPTERA_JOB \$HAPTERA_JOB_TOKEN \$HAPTERA_NODE >>$effects; sleep $4; echo end \$HAPTERA_JOB >>$effects"
  api POST /v1/jobs "{\"name\": \"$1\", \"count\": $3, \"spec\": {\"command\": [\"bash\", \"-c\", \"$script\"],
    \"size\": {\"cpus\": $2, \"memory_mb\": 100}, \"retry\": \"lost\"}}" | sed 's/.*"first":\([0-9]*\).*/\1/'
}
ended() { (($(grep -c '^end ' "$effects") >= $1)); }
nothing_left() { (($(ours) == 0 && $(processes) == 0)); }
no_nodes() { [[ -z $(api GET '/v1/queue' | grep -o '"name":"burst-') ]]; }

: >"$effects"
[[ $(ours) == 0 && $(processes) == 0 ]] || fail "there are instances before there is a job"
# Another's machine in the same cloud, under a name that could be ours.
curl -sf -m 5 -o /dev/null -d '{"name": "burst-77", "owner": "somebody", "size": "small"}' "$cloud/create"

# 1. From nothing, for jobs of three sizes.
since=$(now_ms)
first=$(submit small 1 12 1)
submit medium 2 3 1 >/dev/null
submit large 8 1 1 >/dev/null
wait_for "a job has ended" ended 1
said "no nodes, then a job has ended on one" "$since" "$(sizes)"
wait_for "16 jobs have ended" ended 16
said "16 jobs have ended" "$since" "$(sizes)"
(($(grep -c '^begin' "$effects") == 16)) || fail "some began twice"

# 2. Back to nothing.
since=$(now_ms)
left() { (($(ours) == 0)); }
wait_for "the pool is empty" left
wait_for "no process of it is left" eval '(($(processes) == 1))' # the other's
said "idle for 4 s, and nothing is left" "$since" "$(sizes) is another's"
kept() { [[ $(api GET "/v1/entities/job:$first/log") == *"said on burst-"* ]]; }
wait_for "what a job wrote outlives its machine" kept

# 3. No capacity for the cheapest size: the next one at once, within the price factor.
since=$(now_ms)
faults '{"lacks": ["small"]}'
submit instead 1 1 0.2 >/dev/null
wait_for "it has run" ended 17
[[ $(sizes) == *medium* ]] || fail "no medium one: $(sizes)"
said "no capacity for small: medium instead" "$since" "$(sizes)"
wait_for "the pool is empty" left

# 4. A quota lower than the pool: never exceeded, and all jobs run.
since=$(now_ms)
faults '{"quota": 3}' # the other's machine counts
submit quota 2 6 0.5 >/dev/null
wait_for "all have run" ended 23
said "a quota of 2 for us, 6 jobs" "$since" "$(sizes)"
refused=$(grep -c 'was refused' "$root/parent/serve.log")
((refused <= 8)) || fail "$refused requests were refused: what was refused is asked for again"

# 5. Machines that never come up are destroyed at their deadline; another serves.
wait_for "the pool is empty" left
since=$(now_ms)
faults '{"hangs": ["medium"]}'
hung=$(submit hangs 2 1 0.2)
wait_for "one is being booted" eval '(($(ours) > 0))'
faults '{}'
wait_for "it has run" ended 24
(($(now_ms) - since >= 15000)) || fail "it was not waited for until its deadline"
said "a machine that hangs is replaced after 15 s" "$since" "job $hung has run"

# 6. The parent is killed while an instance is made, and while the cloud does not destroy.
wait_for "the pool is empty" left
since=$(now_ms)
faults '{"destroy_fails": 3}'
submit crash 1 3 1 >/dev/null
wait_for "one is there" eval '(($(ours) > 0))'
kill -9 "$(cat "$root/parent/parent.pid")"
back() { api GET /v1/health >/dev/null; }
wait_for "the parent is back" back
wait_for "3 jobs have run" ended 27
wait_for "the pool is empty" left
wait_for "no node of it asks for work" no_nodes
said "its parent killed as it grew: nothing is left" "$since" "$(sizes) is another's"

doubles=$(awk '$1 == "begin" { print $3 }' "$effects" | sort | uniq -d)
[[ -z $doubles ]] || fail "twice under one token: $doubles"
[[ $(sizes) == "1 small" ]] || fail "the other's machine is gone: $(sizes)"
echo "all held"
