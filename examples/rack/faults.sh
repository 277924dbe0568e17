# shellcheck shell=bash
# What else breaks in a rack, one at a time; each is told with how long it took, and what the BMCs
# were told meanwhile. A part of check.sh, which begins it with all machines in sync.

all=("${nodes[@]}" "$unknown")
link_loss_s=${RACK_LINK_LOSS_S:-60}
agent_back_s=3

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
all_orders() { local one; for one in "${all[@]}"; do orders "$one"; done; }
all_machines() { local one; for one in "${all[@]}"; do machine "$one"; done; }
# untouched WHAT: no BMC was told anything, no machine is another than at `remember`
remember() { told_before=$(all_orders) machines_before=$(all_machines); }
untouched() {
  [[ $(all_orders) == "$told_before" ]] || fail "$1: a BMC was told something"
  [[ $(all_machines) == "$machines_before" ]] || fail "$1: a machine was restarted"
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
since=$(now_ms)
breaks bmc rack1n1
wait_for "the BMC is told not to answer" why_says rack1n1 'does not answer\|refuses the login'
took "BMC hangs" "it is told so"
in_sync rack1n2 || fail "another node is held up by a BMC that hangs"
breaks bmc rack1n1 --mend
wait_for "all are in sync" all_in_sync
untouched "a BMC hung"

# A cable is pulled: the node is not heard, and is left alone until it is again.
since=$(now_ms)
breaks cable rack1n2
sleep "$link_loss_s"
untouched "a link was lost"
! in_sync rack1n2 || fail "a node without a link is in sync"
breaks cable rack1n2 --mend
wait_for "all are in sync" all_in_sync
untouched "a link came back"
took "link lost for $link_loss_s s" "no node was restarted"

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
