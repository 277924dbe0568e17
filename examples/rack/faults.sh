# shellcheck shell=bash
# What breaks in a rack, one of each; each is told with how long it took. A part of check.sh, which
# begins it with all machines in sync. What takes minutes goes on beside the rest. In each rack no
# more than two machines fall silent within 30 s, or the parent's brake would stop all.

link_loss_s=${RACK_LINK_LOSS_S:-60}
agent_back_s=${RACK_AGENT_BACK_S:-3}
cut_seen_s=10 # the next reading begins within 5 s, and has 5 s
alarm_s=30
once="boot pxe,power 1," # what a BMC is told for one start
since=0

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
all_in_sync() { local one; for one in "${nodes[@]}" "$unknown"; do in_sync "$one" || return 1; done; }
all_orders() { local one; for one in "${nodes[@]}" "$unknown"; do orders "$one"; done; }
# noted NODE SINCE PATTERN: how long after that (seconds since 1970) the parent recorded this.
noted() {
  curl -sS -m 5 --unix-socket "$root/api.sock" -H 'Accept: application/x-ndjson' \
    "http://localhost/v1/happenings?select=node:$1&limit=100" | grep -- "$3" |
    sed 's/^{"at_s":\([0-9.]*\),.*/\1/' | awk -v t="$2" '$1 > t { m = $1 } END { if (!m) exit 1; printf "%.1f", m - t }'
}
why_says() { ask why "$1" 2>/dev/null | grep -q -- "$2"; }
took() { printf '%s: %d.%d s; %s\n' "$1" $((($(now_ms) - since) / 1000)) $((($(now_ms) - since) % 1000 / 100)) "$2"; }
now_s() { echo "${EPOCHREALTIME/,/.}"; }
ended() { grep -ac 'the agent ended' "$(console "$1")" || true; }
# For how long the emulator of a machine has computed: how busy this machine is does not count.
ticks() { awk '{ print $14 + $15 }' "/proc/$(machine "$1")/stat"; }
# What the agent of a node has sent since then (seconds since 1970), by its packets' times.
heard() { tcpdump -ttnr "$capture" "src host $(on_bridge "$1") and udp src port 4271" 2>/dev/null | awk -v t="$2" '$1 > t { print $1 }'; }
longest_silence() { heard "$1" "$2" | awk -v t="$2" '{ if ($1 - t > m) m = $1 - t; t = $1 } END { printf "%.1f", m }'; }
# sent NODE SINCE FILTER: how many such packets its card has sent since then
sent() { tcpdump -ttnr "$capture" "ether src $(mac "$1") and ($3)" 2>/dev/null | awk -v t="$2" '$1 > t' | wc -l; }
asks_in_vain() { (($(sent "$1" "$2" 'udp dst port 67') > 2)); }
asks_for_address() { ask why -v "$1" | grep -q 'noted  netboot: requests an address'; }
is_offered() { [[ $(entity "$1") == *'"netboot":{"value":"offered"'* ]]; }

# A kernel panics, and a machine loses its power whose BMC goes on to say that it is on. Nothing is
# heard of either, and nobody acts for two minutes: that goes on until the end.
panicked=rack1n1 lied_of=rack2n4
began=$(now_ms) began_at=$(now_s)
sysrq "$panicked" c
breaks reading "$lied_of"
breaks machine "$lied_of"

# A machine that nobody knows asks for an address; nothing is served to it, and it is told.
ask unset "$unknown" power agent >/dev/null 2>&1 || true # of an earlier check
is_unclaimed() { [[ $(ask unclaimed -o name) == "$(mac "$unknown")" ]]; }
bmc "$unknown" chassis bootdev pxe
bmc "$unknown" chassis power on
wait_for "$unknown has asked" is_unclaimed
[[ -z $(first "ether src $(mac "$unknown") and (udp dst port 69 or tcp)") ]] || fail "$unknown was served something"
! ask claim "$(mac rack1n1)" "$unknown" 2>/dev/null || fail "a machine was claimed twice"
ask claim "$(mac "$unknown")" "$unknown" -m "found in slot 3"
bmc "$unknown" chassis power off

# A second DHCP server is there, and its offers are taken: it is named, and nothing is fetched.
second=192.0.2.66 uefi=rack2n7 second_at=$(now_s) since=$(now_ms)
breaks dhcp2
ask set "$unknown" power=on agent=up >/dev/null
breaks machine "$uefi"
is_of_second() { ask why -v "$1" | grep -q "noted  netboot: took an address from another DHCP server, $second"; }
for one in "$unknown" "$uefi"; do
  wait_for "the second DHCP server of $one is named" is_of_second "$one"
  (($(sent "$one" "$second_at" 'udp dst port 69 or tcp') == 0)) || fail "$one was served by a second DHCP server"
done
took "second DHCP server" "$unknown and $uefi took its offers: it is named"

# DHCP is corrupt: what boots, with a BIOS and with UEFI, is offered its files, asks in vain, and
# fetches nothing. A cable is pulled at that time, for a minute.
unlinked=rack1n2
since=$(now_ms)
breaks dhcp # which ends the other fault
# Firmware may have given up by now.
breaks machine "$unknown"
breaks machine "$uefi"
corrupt_at=$(now_s)
link_is_lost() {
  breaks cable "$unlinked"
  sleep "$link_loss_s"
  ! in_sync "$unlinked" || fail "a node without a link is in sync"
  untouched "$unlinked"
  breaks cable "$unlinked" --mend
}
cable_ms=$(now_ms)
link_is_lost & # so that it is for a minute, no matter how long the rest takes
link_is_lost=$!

# Meanwhile a BMC hangs: its power is not known, nobody acts, and it is told.
hung=rack2n6 at=$(now_s) hung_ms=$(now_ms)
breaks bmc "$hung"
alarm='"sort":"stands".*\(does not answer\|refuses the login\)'
wait_for "the alarm is recorded" noted "$hung" "$at" "$alarm" >/dev/null
wait_for "the BMC is told not to answer" why_says "$hung" 'does not answer\|refuses the login'
after_s=$(noted "$hung" "$at" "$alarm")
((${after_s%.*} < alarm_s)) || fail "that the BMC of $hung does not answer was recorded after $after_s s"
since=$hung_ms took "BMC hangs" "it is told so; by the record its node was stuck after $after_s s"
in_sync rack2n5 || fail "another node is held up by a BMC that hangs"
breaks bmc "$hung" --mend

for one in "$unknown" "$uefi"; do
  wait_for "$one asks thrice" asks_in_vain "$one" "$corrupt_at"
  wait_for "$one is offered its files" is_offered "$one"
  wait_for "it is told how far $one has come" asks_for_address "$one"
  (($(sent "$one" "$corrupt_at" 'udp dst port 69 or tcp') == 0)) || fail "$one was served by corrupt DHCP"
done
breaks dhcp --mend
# Firmware may have given up by now.
breaks machine "$unknown"
breaks machine "$uefi"
took "corrupt DHCP" "$unknown and $uefi asked in vain, and fetched nothing"
wait_for "$hung is in sync" in_sync "$hung"
untouched "$hung"

# While these boot, an agent is killed: its machine's init starts it again; no reboot.
killed=rack2n5 before=$(ended rack2n5) at=$(now_s) since=$(now_ms)
used=$(ticks "$killed")
sysrq "$killed" i
restarted() { (($(ended "$killed") > before)) && [[ $(heard "$killed" "$at" | wc -l) -gt 8 ]] && in_sync "$killed"; }
wait_for "the agent of $killed is back" restarted
untouched "$killed"
used=$(($(ticks "$killed") - used))
((used <= agent_back_s * $(getconf CLK_TCK))) || fail "the agent of $killed took $used ticks of its processor to be back"
took "agent killed (-9)" "its node was silent for $(longest_silence "$killed" "$at") s, used its processor for $used ticks, and was not restarted"

since=$cable_ms
wait "$link_is_lost" || fail "the link of $unlinked was not lost as it should"
wait_for "$unlinked is in sync" in_sync "$unlinked"
untouched "$unlinked"
took "link lost for $link_loss_s s" "the node was not restarted"

# A machine loses its power: that is seen, and it boots again beside the others.
cut=$killed at=$(now_s) cut_ms=$(now_ms) before=$(starts "$killed")
breaks machine "$cut"
wait_for "$cut is seen to be off" noted "$cut" "$at" '"name":"power","value":"off"' >/dev/null
after_s=$(noted "$cut" "$at" '"name":"power","value":"off"')
((${after_s%.*} < cut_seen_s)) || fail "that $cut was off was seen after $after_s s"

# Of a BMC that says that power is on which is off, it is told that the step has no effect. It is sent
# once; and as soon as the BMC says what is so, the machine boots.
wait_for "the lie is told" noted "$lied_of" "$began_at" 'switch_off: returned, but power is on' >/dev/null
told "$lied_of" "${once}shutdown 1,power 0,"
breaks reading "$lied_of" --mend

wait_for "$unknown is up" is_up "$unknown" 1
check_order "$unknown"
printf '%s was claimed, and is up\n' "$unknown"
wait_for "$uefi is up again" is_up "$uefi" 2
wait_for "$cut is up again" is_up "$cut" $((before + 1))
[[ $(machine "$cut") != "${first_machine[$cut]}" ]] || fail "$cut is the same process"
told "$cut" "$once$once"
check_machine "$cut"
since=$cut_ms took "power cut" "$cut was seen to be off after $after_s s, and is up again"

# Whose kernel panicked was switched off and on; it did not hear that it should shut down.
since=$began
wait_for "$panicked is up again" is_up "$panicked" 2
grep -aq 'Kernel panic' "$(console "$panicked")" || fail "the kernel of $panicked did not panic"
[[ $(machine "$panicked") != "${first_machine[$panicked]}" ]] || fail "$panicked is the same process"
told_rounds "$panicked" "shutdown 1,power 0,$once"
took "kernel panic" "$panicked was switched off and on, and is up again"

wait_for "$lied_of is up again" is_up "$lied_of" 2
told_rounds "$lied_of" "shutdown 1,power 0,$once"
took "BMC lies" "it was told to switch off, once, and $lied_of is up again"

# A BMC shows another certificate: no password goes there, and it is told; then it is the former.
pinned=$uefi told_before=$(orders "$uefi") since=$(now_ms)
breaks pin "$pinned"
wait_for "the other certificate is told" why_says "$pinned" 'has another certificate than before'
breaks pin "$pinned" --mend
wait_for "$pinned is in sync" in_sync "$pinned"
[[ $(orders "$pinned") == "$told_before" ]] || fail "the BMC of $pinned was told something"
took "other certificate" "$pinned was left alone, and the file of its pin is named"

# While no other boots, a kernel is missing: the machine is not switched on, and the file is named.
kernel=$root/parent/minos/kernel told_before=$(orders "$unknown") since=$(now_ms)
mv "$kernel" "$kernel.away"
breaks machine "$unknown"
wait_for "the missing kernel is named" why_says "$unknown" "$kernel"
[[ $(orders "$unknown") == "$told_before" && ! -e $root/nodes/$unknown/qemu.pid ]] || fail "$unknown was switched on without a kernel"
took "kernel missing" "the machine is off, and $kernel is named"
mv "$kernel.away" "$kernel"
ask retry "$unknown"

# The parent is killed: another takes over where it was; no power action.
wait_for "all are in sync" all_in_sync
told_before=$(all_orders) old=$(cat "$root/parent/parent.pid") since=$(now_ms)
kill -9 "$old"
back() { [[ $(cat "$root/parent/parent.pid") != "$old" ]] && all_in_sync; }
wait_for "the parent is back" back
[[ $(all_orders) == "$told_before" ]] || fail "the parent was killed: a BMC was told something"
took "parent killed (-9)" "all are in sync, and no BMC was told anything"

# Who was not broken was not touched, from its first start on.
untouched "$hung"
untouched "$unlinked"
told "$uefi" "$once$once$once$once"
