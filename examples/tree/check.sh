#!/usr/bin/env bash
# Looks at the tree from outside, kills a parent of each level and then the root, puts a node out,
# and sees what comes of it.
#
#   examples/tree/check.sh [DIRECTORY]     the directory that holds .haptera
#
# It uses curl, ss, /proc, pid files, logs and the BMCs' own records; of haptera `promote` and
# `evict` alone.
set -euo pipefail

directory=${1:-$(cd "$(dirname "$0")/../.." && pwd)}
root=$directory/.haptera
haptera=$(cd "$(dirname "$0")/../.." && pwd)/.venv/bin/haptera
# shellcheck source=examples/tree/parents.sh
source "$(dirname "$0")/parents.sh"
wait_s=60
nodes=()
for rack in 1 2 3; do for n in 1 2 3 4 5 6 7 8; do nodes+=("rack${rack}n${n}"); done; done

# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"
answers() { [[ $(curl -s -m 1 "http://$(address "$1"):${2:-8080}/") == "$1" ]]; }
# The process that listens there, by the kernel's own account.
listener() { ss -ltnpH "src $(address "$1"):${2:-8080}" | sed -n 's/.*pid=\([0-9]*\).*/\1/p'; }
actions() { cat "$root"/nodes/*/bmc/commands.jsonl | grep -c '"verdict":"accepted"' || true; }
services() { for node in "${nodes[@]}"; do echo "$node $(listener "$node")"; done; }

# ask CLIENT_FILE METHOD PATH [BODY]: headers and body of the answer
ask() {
  local url token
  url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' "$1")
  token=$(sed 's/.*"token":"\([^"]*\)".*/\1/' "$1")
  curl -sf -m 5 -i -X "$2" "$url$3" ${4:+-d "$4"} -H @- <<<"Authorization: Bearer $token"
}

# A change asked of the root listens at the node: node, port, client file
change() {
  ask "$3" PATCH "/v1/entities/service:web@$1/desired?take=1" "{\"port\": $2}" >/dev/null
  wait_for "$1 serves at port $2" answers "$1" "$2"
}

# moves NODE: how often its agent has moved to the parent at this address
moves() { grep -c "moves to the parent at 127.$(octet).0.$2:" "$root/nodes/$1/agent.log" || true; }
rack1_moved() { # to the parent at OCTET, for the COUNTth time
  local n
  for n in 1 2 3 4 5 6 7 8; do (($(moves "rack1n$n" "$1") >= $2)) || return 1; done
}

untouched() { # WHAT: all services are the processes that they were, and no power action was taken
  [[ $(actions) == "$power" ]] || fail "$1: power was switched"
  local after
  after=$(services)
  [[ $after == "$running" ]] || { diff <(echo "$running") <(echo "$after") >&2; fail "$1: a service is another"; }
}

since=$(now_ms)
for node in "${nodes[@]}"; do wait_for "$node answers" answers "$node"; done
said "24 nodes answer" "$since" "$(actions) power actions"
(($(actions) == 24)) || fail "24 nodes took $(actions) power actions"

converged() { ask "$1" GET /v1/summary | tail -n 1 | grep -q '"node":{[^}]*"converged":24[,}]'; }
since=$(now_ms)
wait_for "the root knows all 24 to be as desired" converged "$client"
said "the root sees it, through two levels" "$since" "all converged"

# Their parents are two levels below, and made their sessions: it is known here how they enrolled.
out_of_band() { ask "$1" GET '/v1/entities?kind=node&nodes=rack*' | grep -o '"enrolment":"out-of-band"' | wc -l; }
all_enrolled() { (($(out_of_band "$1") == 24)); }
since=$(now_ms)
wait_for "the root knows at which level all 24 have enrolled" all_enrolled "$client"
said "the root knows how they enrolled" "$since" "all out of band"

# keeps PARENT ABOVE NODES: the root knows this parent two levels below it, and its nodes
keeps() { ask "$client" GET /v1/parents | tail -n 1 | grep -qF "\"name\":\"$1\",\"above\":\"$2\",\"version\":\"$version\",\"keeps\":\"$3\""; }
since=$(now_ms)
version=$(ask "$client" GET /v1/health | sed -n '$s/.*"version":"\([^"]*\)".*/\1/p')
for rack in 1 2 3; do
  above=t1; [[ $rack == 2 ]] && above=t2
  wait_for "the root knows m$rack to keep rack$rack" keeps "m$rack" "$above" "rack${rack}n[1-8]"
done
said "the root names the parents, two levels down" "$since" "each keeps its rack"

since=$(now_ms)
change rack1n8 8081 "$client"
said "a change goes down to a node" "$since" "rack1n8 serves at its new port"
change rack1n8 8080 "$client"

power=$(actions) running=$(services)

# 1. A parent below is killed: its nodes go on, move on, and come back.
since=$(now_ms)
kill -9 "$(cat "$tree/m1.pid")"
node=rack1n1 pid=$(listener rack1n1)
kill -9 "$pid"
healed() { [[ -n $(listener "$1") && $(listener "$1") != "$2" ]] && answers "$1"; }
wait_for "$node mends its service without a parent" healed "$node" "$pid"
said "m1 killed; a node without parent mends itself" "$since" "its service runs again"
running=$(services)
wait_for "the nodes of rack1 move to m2" rack1_moved 12 1
change rack1n2 8082 "$client"
said "its 8 nodes moved to m2" "$since" "a change reaches them by it"
change rack1n2 8080 "$client"
running=$(sed "s/^rack1n2 .*/rack1n2 $(listener rack1n2)/" <<<"$running")
wait_for "the root sees them through m2" converged "$client"
untouched "m1 killed"

since=$(now_ms)
start_parent m1
wait_for "the nodes of rack1 are back at m1" rack1_moved 11 1
change rack1n3 8083 "$client"
said "m1 started again; its nodes came back" "$since" "a change reaches them by it"
change rack1n3 8080 "$client"
running=$(sed "s/^rack1n3 .*/rack1n3 $(listener rack1n3)/" <<<"$running")
untouched "m1 started again"

# 2. A parent in the middle is killed: what is below it follows another one.
since=$(now_ms)
kill -9 "$(cat "$tree/t1.pid")"
change rack1n4 8086 "$client"
said "t1 killed; m1 follows t2" "$since" "a change reaches a node of m1"
change rack1n4 8080 "$client"
running=$(sed "s/^rack1n4 .*/rack1n4 $(listener rack1n4)/" <<<"$running")
wait_for "the root sees all through t2" converged "$client"
untouched "t1 killed"
start_parent t1

# 3. The root is killed for good, while changes are written, and its standby promoted.
replicated() { ask "$client" PATCH /v1/entities/node:m3/desired?take=1 '{}' | grep -qi '^haptera-durability: replicated'; }
wait_for "the standby keeps up" replicated
written=$tree/written
: >"$written"
(
  for ((number = 1; number < 100000; number++)); do
    told=$(ask "$client" PATCH "/v1/entities/node:m3/attributes?take=1" "{\"rack\": \"$number\"}") || exit 0
    grep -qi '^haptera-durability: replicated' <<<"$told" && echo "$number" >>"$written"
  done
) &
writer=$!
wait_for "a hundred changes are acknowledged" eval '(($(wc -l <"$written") > 100))'
kill -STOP "$(cat "$root/parent/init.pid")" # so that nothing starts it again
since=$(now_ms)
kill -9 "$(cat "$root/parent/parent.pid")"
wait "$writer" || true
"$haptera" promote --dir "$tree/standby" >/dev/null
new=$tree/standby.json
wait_for "the standby serves" eval 'ask "$new" GET /v1/health >/dev/null'
took=$(ask "$new" GET /v1/entities/node:m3 | tail -n 1 | sed 's/.*"rack":"\([0-9]*\)".*/\1/')
(($(tail -n 1 "$written") <= took)) || fail "change $(tail -n 1 "$written") was acknowledged, and $took is there"
said "the root killed, its standby promoted" "$since" "$(wc -l <"$written") changes acknowledged, none lost"
wait_for "the new root sees all" converged "$new"
wait_for "the new root knows at which level all have enrolled" all_enrolled "$new"
change rack2n4 8084 "$new"
said "a change goes down from the new root" "$since" "rack2n4 serves at its new port"
change rack2n4 8080 "$new"
running=$(sed "s/^rack2n4 .*/rack2n4 $(listener rack2n4)/" <<<"$running")
untouched "the root killed"

# 4. The old root comes back after all: nobody follows it any more.
since=$(now_ms)
kill -CONT "$(cat "$root/parent/init.pid")"
wait_for "the old root serves again" eval 'ask "$client" GET /v1/health >/dev/null'
kill -9 "$(cat "$tree/t2.pid")"
start_parent t2 # it asks the old root first
refused() { grep -q "term 1 has begun" "$tree/t2.log"; }
wait_for "t2 refuses the old root" refused
wait_for "the new root sees all" converged "$new"
change rack2n5 8085 "$new"
said "the old root is back; t2 does not follow it" "$since" "a change from the new root reaches rack2n5"
change rack2n5 8080 "$new"
running=$(sed "s/^rack2n5 .*/rack2n5 $(listener rack2n5)/" <<<"$running")
untouched "the old root is back"

# 5. A node is put out at the root: no parent that it may have hears it any more.
since=$(now_ms)
"$haptera" --client "$new" evict rack3n1 >/dev/null
put_out() { grep -q "node rack3n1 put out" "$tree/$1.log"; }
for name in m1 m2 m3; do wait_for "$name puts rack3n1 out" put_out "$name"; done
silent() { ask "$new" GET /v1/entities/service:web@rack3n1 | tail -n 1 | grep -q '"run":{[^}]*"known":false'; }
wait_for "what was known of it is remembered" silent
said "rack3n1 put out at the root" "$since" "m3, which kept it, does not hear it"
untouched "rack3n1 put out"

for log in "$tree"/*.log; do ! grep -q Traceback "$log" || fail "$log has a traceback"; done
echo "all held"
