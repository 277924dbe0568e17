#!/usr/bin/env bash
# Kills all that carries routes between two routers, while 500 of them change each second; then has
# another version of the reflector take over, and back.
#
#   examples/router/check.sh [DIRECTORY]     the directory that holds .haptera
#
# What came through, the routers say: the table of the one behind the reflectors is that of the one
# before them, and its log has when each route changed. What each process was given, it noted itself.
set -euo pipefail

directory=$(realpath "${1:-$(cd "$(dirname "$0")/../.." && pwd)}")
root=$directory/.haptera
here=$(cd "$(dirname "$0")" && pwd)
python=$here/../../.venv/bin/python
records=$root/shared/records
routers=$directory/routers
networks=20000
changes_a_second=500
# Longer than it takes until routes change again; what is silent then has been seen.
changing_s=5
wait_s=60
# So many outputs of the other version are to be equal before it leads; so long the first one stays
# beside it then, and so long the way back may take.
compared_min=1000 keep_s=5 back_ms_max=60000

more_on_failure() { "$python" "$here/audit.py" "$records"; }
more_picture() { count outside; wc -l "$records"/*; }
# shellcheck source=tools/checking.sh
source "$here/../../tools/checking.sh"
scratch=$(mktemp -d)
neighbour=
trap 'rm -rf "$scratch"; [[ -z $neighbour ]] || kill "$neighbour"' EXIT

# A router's own answers; its socket has a path of few letters only from there.
ask() { (cd "$routers" && birdc -s "$1.ctl" "${@:2}"); }
count() { ask "$1" show route count | sed -n 's/^\([0-9]*\) of .*table master4$/\1/p'; }
# One line for each network, with all that its route says but who reflected it.
table() {
  ask "$1" show route all | awk '
    /^[0-9].*\// { if (line) print line; line = $1 }
    /BGP\./ && !/originator_id|cluster_list/ { $1 = $1; line = line " " $0 }
    END { print line }' | sort
}
same_tables() { cmp -s <(table feeder) <(table outside); }

# The process of a rank that began last: its file, its number, and where it runs.
record() { ls -t "$records/$1".* 2>/dev/null | head -n 1; } # GROUP.RANK
pid() { head -n 1 "$(record "$1")" 2>/dev/null | cut -d ' ' -f 2; }
node() { head -n 1 "$(record "$1")" | cut -d ' ' -f 3; }
# The rank that leads: of the lease with the highest epoch that is held.
leader() { # GROUP
  local holder rank
  holder=$(cat "$root"/nodes/*/run/leases/"$1" | grep held | sort -n | tail -n 1 | cut -d ' ' -f 2)
  for rank in 0 1 2 64; do [[ $(pid "$1.$rank") != "$holder" ]] || echo "$rank"; done
}

# The longest time without a change of a route, in ms, since then.
silent_ms() { # SINCE_S
  awk -v since="$1" '
    / > (added|replaced|removed|updated)/ && $1 > since {
      if ($1 - last > longest && last) longest = $1 - last
      last = $1
    }
    BEGIN { last = since }
    END { printf "%d", longest * 1000 }' "$routers/outside.log"
}
changed_since() {
  tail -n 20 "$routers/outside.log" | awk -v since="$1" '
    / > (added|replaced|removed|updated)/ { last = $1 }
    END { exit !(last > since) }'
}

# Another process of the rank is given messages.
goes_on() { # GROUP.RANK PID
  local now
  now=$(pid "$1") && [[ $now != "$2" ]] && lives "$now" && grep -q '^[0-9]' "$(record "$1")"
}
feeds() { local now; now=$(pid feed.0) && [[ $now != "$1" ]] && lives "$now" && (($(wc -l <"$(record feed.0)") > 2)); }

# The server of the streams: what the replica that runs it has started.
server() { pgrep -P "$(sed -n 's/^service \([0-9]*\) .*/\1/p' "$root"/nodes/*/run/replicas/streams.0/state)"; }
serves() { local now; now=$(server) && [[ $now != "$1" ]]; }

# seen WHAT SINCE_S: routes have changed again for a while; the silence before that is told
seen() {
  local until_s
  until_s=$(awk -v now="$EPOCHREALTIME" -v more="$changing_s" 'BEGIN { printf "%.3f", now + more }')
  wait_for "$1: routes change" changed_since "$until_s"
  printf '%-28s routes changed again after at most %d ms\n' "$1:" "$(silent_ms "$2")"
}

# 1. All networks are told from one end to the other.
since=$(now_ms)
ip netns exec feeder "$python" "$here/neighbour.py" 127.0.0.2 127.0.0.1 $networks $changes_a_second \
  >"$scratch/changes" &
neighbour=$!
has_all() { (($(count outside) == networks)); }
wait_for "the outside router has all networks" has_all
wait_for "the tables are the same" same_tables
printf '%d networks are known outside after %d ms\n' $networks $(($(now_ms) - since))

# 2. They change, and one after the other is killed that has to do with it.
began=$EPOCHREALTIME
kill -USR1 "$neighbour"
seen "nothing" "$began"

lead=$(leader reflector) sibling=$((($(leader reflector) + 1) % 3))
since=$EPOCHREALTIME old=$(pid "reflector.$sibling")
kill -9 "$old"
wait_for "a sibling is back" goes_on "reflector.$sibling" "$old"
seen "a sibling killed" "$since"

since=$EPOCHREALTIME old=$(pid "reflector.$lead")
kill -9 "$old"
wait_for "the leader is back" goes_on "reflector.$lead" "$old"
seen "the leader killed" "$since"

since=$EPOCHREALTIME old=$(pid feed.0)
kill -9 "$old"
wait_for "the shim that feeds is back" feeds "$old"
seen "the feeding shim killed" "$since"

lead=$(leader out)
since=$EPOCHREALTIME old=$(pid "out.$lead")
kill -9 "$old"
wait_for "the shim that announces is back" goes_on "out.$lead" "$old"
seen "the announcing shim killed" "$since"

since=$EPOCHREALTIME old=$(server)
kill -9 "$old"
wait_for "the streams are served again" serves "$old"
seen "the streams' server killed" "$since"

lead=$(leader reflector)
since=$EPOCHREALTIME old=$(pid "reflector.$lead")
curl -fsS -m 2 -o /dev/null -d '{"power":"off","command":"by-hand"}' \
  "http://$(cat "$root/nodes/$(node "reflector.$lead")/bmc/address")/power" || fail "a BMC refuses"
wait_for "the leader is elsewhere" goes_on "reflector.$lead" "$old"
seen "the leader's node off" "$since"

since=$EPOCHREALTIME old=$(cat "$root/parent/parent.pid")
kill -9 "$old"
wait_for "there is another parent" is_replaced parent/parent.pid "$old"
seen "the parent killed" "$since"

# 3. Other versions run beside the reflectors, on what these hear. One that says something else is
# found out; one that says the same leads, and the first ends, and comes back.
counts() { haptera trial status reflector | awk '/reflector\.64@/ { print $4, $5 }'; } # EQUAL DIFFERENT
differ() { local equal different; read -r equal different < <(counts) && [[ $different =~ ^[1-9] ]]; }
are_equal() { local equal different; read -r equal different < <(counts) && ((equal >= compared_min && different == 0)); }
tries() {
  local pid
  for pid in $(sed -n 's/^service \([0-9]*\) .*/\1/p' "$root"/nodes/*/run/replicas/reflector.64/state); do
    ! lives "$pid" || return 0
  done
  return 1
}
is_over() { ! tries; }
leads() { [[ $(leader reflector) == "$1" ]]; }
own_lead() { [[ $(leader reflector) =~ ^[0-2]$ ]]; }
own_run() { local rank; for rank in 0 1 2; do ! lives "$(pid "reflector.$rank")" || return 0; done; return 1; }
own_ended() { ! own_run; }

since=$EPOCHREALTIME
haptera trial start reflector "'$python' '$here/reflect.py' '$root/shared/trial' 10.0.0.98" -o name >/dev/null
wait_for "a version that says something else is found out" differ
haptera trial abort reflector -m "it says that it is another reflector" -o name >/dev/null
wait_for "the bad version has ended" is_over
seen "a bad version tried" "$since"

since=$EPOCHREALTIME
haptera trial start reflector "'$python' -O '$here/reflect.py' '$records'" -o name >/dev/null
wait_for "the other version says the same" are_equal
haptera trial status reflector
haptera trial promote reflector --keep ${keep_s}s -o name >/dev/null
wait_for "the other version leads" leads 64
wait_for "the first version has ended" own_ended
seen "the other version leads" "$since"

since=$EPOCHREALTIME began_ms=$(now_ms)
haptera trial undo reflector -o name >/dev/null
wait_for "the first version leads again" own_lead
back_ms=$(($(now_ms) - began_ms))
seen "back after $back_ms ms" "$since"
((back_ms <= back_ms_max)) || fail "the way back took $back_ms ms"

# 4. Nothing changes any more: the routers have the same table, and the programs the same story.
kill -USR2 "$neighbour"
ended=$EPOCHREALTIME
wrote() { [[ -s $scratch/changes ]]; }
wait_for "the neighbour is quiet" wrote
wait_for "the tables are the same" same_tables
holds() { "$python" "$here/audit.py" "$records" >"$scratch/audit" 2>&1; }
wait_for "all have come to the end" holds
cat "$scratch/audit"
printf '%d changes in %d s; the longest silence was %d ms; %d routes, the same on both sides\n' \
  "$(cat "$scratch/changes")" "$(awk "BEGIN { print $ended - $began }" | cut -d . -f 1)" \
  "$(silent_ms "$began")" "$(count outside)"

# 5. What would be wrong is seen: a line less, and one twice, in what a process noted.
planted() { # WHAT SED FILE
  rm -rf "$scratch/planted"
  cp -r "$records" "$scratch/planted"
  sed -i "$2" "$scratch/planted/$(basename "$3")"
  ! "$python" "$here/audit.py" "$scratch/planted" >/dev/null 2>&1 || fail "$1 is not seen"
}
longest() { ls -S "$records/$1".* | head -n 1; } # GROUP
planted "a message that one lost" '100d' "$(longest out)"
planted "a message that one was given twice" '100p' "$(longest reflector)"
planted "a message that nobody was given" '100a 0123456789abcdef' "$(record feed.0)"
! cmp -s <(table feeder) <(table outside | sed 500d) || fail "a missing route is not seen"
echo "all held"
