# shellcheck shell=bash
# What else breaks in a rack; each is told with how long it took, and what the BMCs
# were told meanwhile. A part of check.sh, which begins it with all machines in sync.

all=("${nodes[@]}" "$unknown")
watched=("${all[@]}") # by `untouched`
link_loss_s=${RACK_LINK_LOSS_S:-60}
agent_back_s=3
alarm_s=30

# By a break and a letter at its serial console (Linux, "magic SysRq").
sysrq() {
  local address
  address=$(cat "$root/nodes/$1/bmc/address")
  exec 7<>"/dev/tcp/${address%:*}/2323"
  # An IPMI BMC reads that console: it starts anew, and we are before it.
  [[ ! -e $root/nodes/$1/bmc/lan.conf ]] || kill -9 "$(cat "$root/nodes/$1/bmc/bmc.pid")"
  printf '\xff\xf3%s' "$2" >&7
  timeout 2 cat <&7 >/dev/null || true
  exec 7>&-
}
all_in_sync() { local one; for one in "${all[@]}"; do in_sync "$one" || return 1; done; }
all_orders() { local one; for one in "${watched[@]}"; do orders "$one"; done; }
all_machines() { local one; for one in "${watched[@]}"; do machine "$one"; done; }
# untouched WHAT: no BMC was told anything, no machine is another than at `remember`
remember() { told_before=$(all_orders) machines_before=$(all_machines); }
untouched() {
  [[ $(all_orders) == "$told_before" ]] || fail "$1: a BMC was told something"
  [[ $(all_machines) == "$machines_before" ]] || fail "$1: a machine was restarted"
}
# How long after that (seconds since 1970) the parent recorded that the node's BMC does not answer.
alarmed() {
  local happened="http://localhost/v1/happenings?select=node:$1&limit=100"
  curl -sS -m 5 --unix-socket "$root/api.sock" -H 'Accept: application/x-ndjson' "$happened" |
    grep '"sort":"stands"' | grep 'does not answer\|refuses the login' |
    sed 's/^{"at_s":\([0-9.]*\),.*/\1/' | awk -v t="$2" '$1 > t { m = $1 } END { if (!m) exit 1; printf "%.1f", m - t }'
}
why_says() { ask why "$1" 2>/dev/null | grep -q -- "$2"; }
took() { printf '%s: %d.%d s; %s\n' "$1" $(((($(now_ms) - since)) / 1000)) $(((($(now_ms) - since)) % 1000 / 100)) "$2"; }
ended() { grep -ac 'the agent ended' "$(console "$1")" || true; }
# For how long the emulator of a machine has computed: how busy this machine is does not count.
ticks() { awk '{ print $14 + $15 }' "/proc/$(machine "$1")/stat"; }
# What the agent of a node has sent since then (seconds since 1970), by its packets' times.
heard() { tcpdump -ttnr "$capture" "src host $(address "$1") and udp src port 4271" 2>/dev/null | awk -v t="$2" '$1 > t { print $1 }'; }
longest_silence() { heard "$1" "$2" | awk -v t="$2" '{ if ($1 - t > m) m = $1 - t; t = $1 } END { printf "%.1f", m }'; }

wait_for "all are in sync" all_in_sync

# An agent is killed: its machine's init starts it again; no reboot.
remember
one=rack1n2 before=$(ended rack1n2) at=${EPOCHREALTIME/,/.} since=$(now_ms)
used=$(ticks "$one")
sysrq "$one" i
restarted() { (($(ended "$one") > before)) && [[ $(heard "$one" "$at" | wc -l) -gt 8 ]] && in_sync "$one"; }
wait_for "$one's agent is back" restarted
untouched "an agent was killed"
used=$(($(ticks "$one") - used))
((used <= agent_back_s * $(getconf CLK_TCK))) || fail "$one's agent took $used ticks of its processor to be back"
took "agent killed (-9)" "its node was silent for $(longest_silence "$one" "$at") s, used its processor for $used ticks, and was not restarted"

# The parent is killed: another takes over where it was; no power action.
old=$(cat "$root/parent/parent.pid") since=$(now_ms)
kill -9 "$old"
back() { [[ $(cat "$root/parent/parent.pid") != "$old" ]] && all_in_sync; }
wait_for "the parent is back" back
untouched "the parent was killed"
took "parent killed (-9)" "all are in sync, and no BMC was told anything"

# A BMC hangs: its power is not known, nobody acts, and it is told.
since=$(now_ms) at=${EPOCHREALTIME/,/.}
breaks bmc rack1n1
wait_for "the BMC is told not to answer" why_says rack1n1 'does not answer\|refuses the login'
wait_for "the alarm is recorded" alarmed rack1n1 "$at" >"$root/lab/alarm"
after_s=$(alarmed rack1n1 "$at")
((${after_s%.*} < alarm_s)) || fail "that the BMC of rack1n1 does not answer was recorded after $after_s s"
took "BMC hangs" "it is told so; by the record its node was stuck after $after_s s"
in_sync rack1n2 || fail "another node is held up by a BMC that hangs"
breaks bmc rack1n1 --mend
wait_for "all are in sync" all_in_sync
untouched "a BMC hung"

# A cable is pulled: the node is not heard, and is left alone until it is again. Meanwhile a machine
# with UEFI loses its power while DHCP is corrupt: it asks in vain, and fetches nothing.
asking=rack2n7 before=$(starts rack2n7) watched=()
for one in "${all[@]}"; do [[ $one == "$asking" ]] || watched+=("$one"); done
remember
since=$(now_ms)
breaks cable rack1n2
breaks dhcp
breaks machine "$asking"
at=${EPOCHREALTIME/,/.}
wait_for "$asking asks thrice" asks_in_vain
wait_for "$asking is offered its files" is_offered
(($(sent 'udp dst port 69 or tcp') == 0)) || fail "$asking was served by corrupt DHCP"
breaks dhcp --mend
breaks machine "$asking"
took "corrupt DHCP (UEFI)" "$asking asked in vain, and fetched nothing"
left_ms=$((link_loss_s * 1000 - $(now_ms) + since))
((left_ms <= 0)) || sleep "$((left_ms / 1000)).$(printf '%03d' $((left_ms % 1000)))"
untouched "a link was lost"
! in_sync rack1n2 || fail "a node without a link is in sync"
breaks cable rack1n2 --mend
wait_for "rack1n2 is in sync" in_sync rack1n2
untouched "a link came back"
took "link lost for $link_loss_s s" "no other node was restarted"
uefi_before=$before

# A kernel panics: nothing is heard, and its node may be recovered: its power is cut and given again.
told_before=$(all_orders | wc -l) panicked=rack1n1 since=$(now_ms)
old=$(machine "$panicked") others_before=$(all_machines | grep -vx "$old") before=$(starts "$panicked")
sysrq "$panicked" c
wait_for "$panicked is up again" is_up "$panicked" $((before + 1))
grep -aq 'Kernel panic' "$(console "$panicked")" || fail "the kernel of $panicked did not panic"
[[ $(machine "$panicked") != "$old" ]] || fail "$panicked is the same process"
[[ $(all_machines | grep -vx "$(machine "$panicked")") == "$others_before" ]] || fail "others were restarted too"
# A panicked kernel does not hear that it should shut down.
told=$(orders "$panicked" | tail -4 | tr '\n' ',')
[[ $told == "shutdown 1,power 0,boot pxe,power 1," ]] || fail "the BMC of $panicked was told $told"
(($(all_orders | wc -l) == told_before + 4)) || fail "BMCs were told more than that"
took "kernel panic" "$panicked was switched off and on, and is up again; no other was touched"
watched=("${all[@]}")
wait_for "$asking is up again" is_up "$asking" $((uefi_before + 1))

# A kernel is missing: the machine is not switched on, and the file is named.
kernel=$root/parent/minos/kernel since=$(now_ms)
mv "$kernel" "$kernel.away"
told_before=$(orders rack1n3)
before=$(starts rack1n3)
breaks machine rack1n3
wait_for "the missing kernel is named" why_says rack1n3 "$kernel"
[[ $(orders rack1n3) == "$told_before" && ! -e $root/nodes/rack1n3/qemu.pid ]] || fail "rack1n3 was switched on without a kernel"
took "kernel missing" "the machine is off, and $kernel is named"
mv "$kernel.away" "$kernel"
ask retry rack1n3

wait_for "rack1n3 is up again" is_up rack1n3 $((before + 1))
wait_for "all are in sync" all_in_sync
check_secrets
