#!/usr/bin/env bash
# Has 60 jobs run, then some on pools and on Slurm, and looks at what they did from outside.
#
#   examples/queue/check.sh [DIRECTORY]     the directory that holds .haptera
#
# The jobs write to a log of effects, each with its token; it is that log that is judged, not what
# the parent says. Of haptera it uses the API alone, with curl.
set -euo pipefail

directory=$(realpath "${1:-$(cd "$(dirname "$0")/../.." && pwd)}")
root=$directory/.haptera
# A job that says no user has no rights: it writes where everybody may.
effects=$(mktemp --suffix=.effects)
chmod 666 "$effects"
wait_s=60

# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"

# submit NAME CPUS MEMORY_MB COUNT PRIORITY SECONDS [RETRY]: prints the number of the first
submit() {
  # A line is one write, so that lines of many jobs do not mix.
  local say="echo \"\$1 \$HAPTERA_JOB \$HAPTERA_JOB_TOKEN \$HAPTERA_NODE\" >>$effects"
  local script="say() { $say; }; trap 'say term; exit 1' TERM; say begin; sleep $6 & wait \$!; say end"
  local command
  command=$(printf '%s' "$script" | sed 's/\\/\\\\/g; s/"/\\"/g')
  api POST /v1/jobs "{\"name\": \"$1\", \"count\": $4, \"priority\": $5, \"spec\": {
    \"command\": [\"bash\", \"-c\", \"$command\"], \"size\": {\"cpus\": $2, \"memory_mb\": $3},
    \"retry\": \"${7:-never}\"}}" | sed 's/.*"first":\([0-9]*\).*/\1/'
}
job() { api GET "/v1/jobs/$1"; }
state() { job "$1" | sed 's/.*"state":"\([a-z]*\)".*/\1/'; }
why() { job "$1" | sed 's/.*"why":"\([^"]*\)".*/\1/'; }
count() { grep -c "^$1 " "$effects" 2>/dev/null || true; }
# Of those from the first on: a lab that is started again has earlier ones.
complete() { [[ $(api GET "/v1/jobs?first=$giant&limit=100" | grep -o '"state":"complete"' | wc -l) == "$1" ]]; }
desire() { api PATCH "/v1/entities/$1/desired" "$2" >/dev/null; }
open_again() { desire "node:$1" '{"work": null, "work_why": null, "work_until": null}'; }
# A pool of which nothing is desired is kept no more.
give_up() { desire "$1" '{"provider": null, "at": null, "nodes": null, "max": null, "idle_s": null, "sizes": null}'; }
# However this ends: the lab may be started and checked again.
leave() {
  rm -f "$effects"
  give_up pool:burst || true
  give_up pool:spares || true
  [[ -z ${giant:-} ]] || api DELETE "/v1/jobs/$giant" >/dev/null || true
}
trap leave EXIT
# No job here fails by itself. Who waits for one that did would wait while all others move.
while_waiting() {
  local failed
  [[ -n ${giant:-} ]] || return 0
  failed=$(api GET "/v1/jobs?first=$giant&state=failed&limit=1" || true)
  [[ $failed != *'"state":"failed"'* ]] || fail "a job has failed: $failed"
}
nodes=(small1 small2 small3 small4 medium1 medium2 medium3 large1)

all_idle() { [[ $(api GET /v1/queue | grep -o '"duty":"idle"' | wc -l) == 8 ]]; }
since=$(now_ms)
wait_for "8 nodes ask for work" all_idle
said "8 nodes of three sizes ask for work" "$since" "${nodes[*]}"

# 1. One job that no node can hold, before 60 that some can.
since=$(now_ms)
giant=$(submit giant 64 1024 1 1000 1)
first=$(submit small 1 256 28 1 1)
submit medium 4 1024 22 2 1 >/dev/null
submit large 8 2048 10 3 0.3 >/dev/null
began() { (($(count begin) >= $1)); }
wait_for "jobs begin behind the one that cannot" began 1
said "a job begins behind one larger than any node" "$since" "$(why "$giant" | cut -c 1-54)"
[[ $(why "$giant") == *"no node is large enough"*"56 CPUs missing"* ]] || fail "why: $(why "$giant")"

# 2. A parent that is killed loses none of it, and has none run twice.
since=$(now_ms)
wait_for "some jobs have run" began 10
kill -9 "$(cat "$root/parent/parent.pid")"
wait_for "the parent is back" api GET /v1/health >/dev/null
wait_for "60 jobs are complete" complete 60
said "its parent killed meanwhile, 60 jobs are complete" "$since" "$(count end) ended"
(($(count begin) == 60 && $(count end) == 60)) || fail "$(count begin) began, $(count end) ended"
doubles=$(awk '{ print $1, $3 }' "$effects" | sort | uniq -d)
[[ -z $doubles ]] || fail "twice under one token: $doubles"
doubles=$(awk '$1 == "end" { print $2 }' "$effects" | sort | uniq -d)
[[ -z $doubles ]] || fail "run twice: $doubles"
[[ $(state "$giant") == queued ]] || fail "the giant is $(state "$giant")"

# 3. A node is drained while its job runs: that ends, and nothing else begins there.
since=$(now_ms)
long=$(submit long 8 2048 1 5 2)
began_job() { grep -q "^begin $1 " "$effects"; }
wait_for "a job begins on large1" began_job "$long"
desire node:large1 '{"work": "draining", "work_why": "a new disk"}'
[[ $(duty large1) == draining ]] || fail "large1 is $(duty large1)"
other=$(submit other 8 2048 1 9 0.1)
drained() { [[ $(duty "$1") == drained ]]; }
wait_for "large1 is drained" drained large1
[[ $(state "$long") == complete ]] || fail "the job on the node that was drained is $(state "$long")"
[[ $(state "$other") == queued ]] || fail "a job began on a node that drains: $(why "$other")"
said "large1 drained; the job on it ended by itself" "$since" "$(why "$other" | cut -c 1-60)"

since=$(now_ms)
open_again large1
is() { [[ $(state "$1") == "$2" ]]; }
wait_for "the job runs once the drain is over" is "$other" complete
said "the drain is over" "$since" "what waited for large1 has run"

# 4. A drain with a deadline: TERM, and its reason; the job that may be is queued again.
since=$(now_ms)
once=$(submit once 4 1024 1 5 300)
again=$(submit again 4 1024 1 5 4 lost)
wait_for "both run on one node" eval 'began_job "$once" && began_job "$again"'
for node in $(awk -v a="$once" -v b="$again" '$1 == "begin" && ($2 == a || $2 == b) { print $4 }' "$effects" | sort -u); do
  desire "node:$node" "{\"work\": \"draining\", \"work_why\": \"a new disk\", \"work_until\": $(date +%s)}"
done
wait_for "the one is cancelled" is "$once" cancelled
wait_for "the other runs again, elsewhere" is "$again" complete
(($(count term) == 2)) || fail "$(count term) jobs had TERM"
(($(grep -c "^begin $again " "$effects") == 2)) || fail "the job that may be run again was not"
[[ $(why "$once") == *"drained until its deadline: a new disk"* ]] || fail "why: $(why "$once")"
said "a drain with a deadline: TERM, then" "$since" "$(why "$once")"
for node in "${nodes[@]}"; do open_again "$node"; done

# 5. A pool, declared now, grows from nothing for 20 jobs that no node has room for, and goes back.
net=$(sed 's/.*"url":"http:..\(127\.[0-9]*\)\.0\.1:.*/\1/' "$root/client.json")
made() { curl -sf -m 5 "http://$net.0.2:4281/instances" | grep -o '"owner":' | wc -l; }
none_made() { (($(made) == 0)); }
# twenty NAME [BACKEND]: the same 20 jobs, for here or elsewhere; prints the first one's number
twenty() {
  local command="echo $1 \$HAPTERA_JOB \$HAPTERA_JOB_TOKEN >>$effects; sleep 0.2"
  api POST /v1/jobs "{\"name\": \"$1\", \"count\": 20, \"spec\": {\"command\": [\"bash\", \"-c\", \"$command\"],
    \"size\": {\"cpus\": 16, \"memory_mb\": 1024}${2:+, \"backend\": \"$2\"}}}" | sed 's/.*"first":\([0-9]*\).*/\1/'
}
twenty_ran() { # NAME FIRST
  local key
  for ((key = $2; key < $2 + 20; key++)); do [[ $(state "$key") == complete ]] || return 1; done
  (($(awk -v name="$1" '$1 == name { print $2, $3 }' "$effects" | sort -u | wc -l) == 20))
}
since=$(now_ms)
none_made || fail "$(made) instances before there is a pool"
desire pool:burst '{"provider": "local", "at": "'"$net"'.0.2:4281", "max": 3, "idle_s": 2,
  "sizes": "huge: 16 cpus, 4096 MB, price 1"}'
first=$(twenty pooled)
wait_for "the pool has instances" eval '(($(made) > 0))'
wait_for "20 jobs have run on the pool's nodes" twenty_ran pooled "$first"
said "a pool grows from 0 to $(made), 20 jobs have run" "$since" "none of them twice"
since=$(now_ms)
wait_for "the pool is empty" none_made
wait_for "its processes have ended" eval '[[ -z $(pgrep "chassis burst") ]]'
said "and is back at 0" "$since" "no process left"
give_up pool:burst

# 6. A pool of the site's own machines: switched on while jobs need them, and off again.
# How many the BMCs say are on, or are not off yet.
spares() {
  local node on=0
  for node in spare1 spare2; do
    curl -sf -m 5 "http://$(cat "$root/nodes/$node/bmc/address")/power" | grep -q '"power":"off"' || ((on += 1))
  done
  echo "$on"
}
none_on() { (($(spares) == 0)); }
since=$(now_ms)
none_on || fail "$(spares) spare machines are on before there is a pool"
desire pool:spares '{"provider": "machines", "nodes": "spare[1-2]", "max": 2, "idle_s": 2,
  "sizes": "spare: 12 cpus, 32768 MB, price 1"}'
kept=$(submit kept 12 1024 1 5 4 lost)
first=$(submit spare 12 1024 4 1 0.5)
wait_for "a job runs on a spare machine" began_job "$kept"
# Whoever comes next finds what is on, and whom it waits for.
kill -9 "$(cat "$root/parent/parent.pid")"
wait_for "the parent is back" api GET /v1/health >/dev/null
wait_for "the last of 5 jobs has run" is "$((first + 3))" complete
wait_for "the first of them has run" is "$kept" complete
on_spares() { awk -v a="$kept" -v b="$first" '$1 == "end" && ($2 == a || $2 >= b) { print $4 }' "$effects"; }
[[ $(on_spares | grep -c '^spare') == 5 ]] || fail "5 jobs ended on $(on_spares | xargs)"
[[ $(grep -c "^begin $kept " "$effects") == 1 ]] || fail "the parent's death ended a job"
said "machines of a pool on, 5 jobs have run" "$since" "$(on_spares | sort -u | xargs)"
since=$(now_ms)
wait_for "the machines are off" none_on
said "and off again" "$since" "$(spares) are on"

# 7. The same 20 jobs on a real Slurm, which `run` has started.
conf=$directory/slurm/slurm.conf
if [[ -e $conf ]]; then
  since=$(now_ms)
  # As who may read its configuration: the lab's folder is its user's alone.
  desire backend:slurm '{"engine": "slurm", "conf": "'"$conf"'", "user": "'"$(id -un)"'"}'
  first=$(twenty onslurm slurm)
  wait_for "20 jobs have run on Slurm" twenty_ran onslurm "$first"
  # Those of a check before this one may be among them.
  (($(SLURM_CONF=$conf squeue --noheader --states=completed | wc -l) >= 20)) ||
    fail "Slurm does not know of 20 jobs"
  said "the same 20 jobs on Slurm" "$since" "$(SLURM_CONF=$conf sinfo --version)"
else
  echo "left out: a Slurm of one's own needs root, slurmctld, slurmd and slurm-client"
fi

for log in "$root"/parent/serve.log "$root"/nodes/*/agent.log; do
  ! grep -q Traceback "$log" || fail "$log has a traceback"
done
echo "all held"
