#!/usr/bin/env bash
# Looks at the racks from outside: four machines with a BIOS behind IPMI BMCs and two with UEFI
# behind Redfish ones come from off to an agent; then one of each breaks that breaks in a rack
# (faults.sh), and a seventh machine, that nobody knows, is claimed and comes up too.
#
#   examples/rack/check.sh [DIRECTORY]     the directory that holds .haptera
#
# The lab runs it where its machines are: it sees their bridge (tcpdump), their consoles, their
# processes, what their BMCs were told, and asks the parent's API with curl.
set -euo pipefail

root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}/.haptera
haptera=$(cd "$(dirname "$0")/../.." && pwd)/.venv/bin/haptera
nodes=(rack1n1 rack1n2 rack2n4 rack2n5 rack2n6 rack2n7)
unknown=rack1n3
parent=10.99.0.1
# Emulated machines on a busy machine boot slowly.
wait_s=${RACK_WAIT_S:-420}
capture=$root/lab/boot.pcap

# shellcheck source=tools/checking.sh
source "$(dirname "$0")/../../tools/checking.sh"

number() { echo $((10#${1##*n})); }
on_bridge() { echo "10.99.0.$((10 + $(number "$1")))"; }
mac() { printf '52:54:00:00:01:%02x' "$(number "$1")"; }
console() { echo "$root/nodes/$1/console.log"; }
machine() { cat "$root/nodes/$1/qemu.pid"; }
orders() { sed -n 's/.*"order":"\([^"]*\)".*/\1/p' "$root/nodes/$1/bmc/commands.jsonl"; }
starts() { grep -ac 'starts its agent' "$(console "$1")" || true; }

# As a person at the parent.
ask() { "$haptera" --client "$root/api.sock" "$@"; }
# As a person who tries what happens then.
breaks() { "$haptera" lab break "$@" --dir "${root%/.haptera}" >/dev/null; }
# As a person with another tool, at the node's BMC.
bmc() {
  local address
  address=$(cat "$root/nodes/$1/bmc/address")
  IPMI_PASSWORD=$(cat "$root/parent/secrets/bmc") ipmitool -I lanplus -C 3 \
    -H "${address%:*}" -p "${address#*:}" -U haptera -E "${@:2}" >"$root/lab/ipmitool.log" 2>&1
}

# What the parent says of the node, over its socket.
entity() { curl -sS -m 5 --unix-socket "$root/api.sock" "http://localhost/v1/entities/node:$1"; }
in_sync() { entity "$1" | tr -d ' \n' | grep -q '"condition":"converged"'; }
# The agent has been started so often on this console, and the node is as desired.
is_up() { (($(starts "$1") >= $2)) && in_sync "$1"; }

# first FILTER...: when the capture has the first packet like that
first() { tcpdump -c 1 -ttnr "$capture" "$@" 2>/dev/null | cut -d' ' -f1; }

# By its card's address for as long as it has no other: DHCP, TFTP, HTTP, then the agent's TLS.
check_order() {
  local node=$1 dhcp tftp http tls
  dhcp=$(first "ether src $(mac "$node") and udp dst port 67")
  tftp=$(first "ether src $(mac "$node") and udp dst port 69")
  http=$(first "ether src $(mac "$node") and tcp dst port 4281")
  tls=$(first "ether src $(mac "$node") and tcp dst port 4271")
  [[ -n $dhcp && -n $tftp && -n $http && -n $tls ]] || fail "$node: DHCP=$dhcp TFTP=$tftp HTTP=$http TLS=$tls"
  printf '%s\n' "$dhcp" "$tftp" "$http" "$tls" | sort -c -n || fail "$node: not in this order"
  awk -v n="$node" -v a="$dhcp" -v b="$tftp" -v c="$http" -v d="$tls" \
    'BEGIN { printf "%s: DHCP, then TFTP after %.1f s, HTTP after %.1f s, its agent after %.1f s\n", n, b-a, c-a, d-a }'
}

# The machine boots by its own firmware, a BIOS or UEFI: it is given no kernel and no disk.
check_machine() {
  local words disks
  words=$(tr '\0' ' ' <"/proc/$(machine "$1")/cmdline")
  [[ $words == *"-boot order=n"* || $words == *",bootindex=1 "* ]] || fail "$1 was not told to boot from the network: $words"
  disks=${words//-drive if=pflash/} # where UEFI lies
  [[ $words != *-kernel* && $disks != *-drive* && $words != *-hda* ]] || fail "$1 has more than its firmware: $words"
}

check_secrets() {
  local password=$root/parent/secrets/bmc # Read by grep itself, or the check would find its own.
  ! cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -qFf "$password" || fail "the BMCs' password is in a process list"
  ! grep -rqsFf "$password" "$root/parent/log" "$root/parent/serve.log" || fail "the BMCs' password is in a log"
  ! grep -qaE 'hp1\.[0-9a-f]+\.' "$root"/nodes/*/console.log || fail "an enrolment token is on a console"
}

told() { # NODE ORDERS...
  local node=$1 seen
  shift
  seen=$(orders "$node" | tr '\n' ',')
  [[ $seen == "$1" ]] || fail "the BMC of $node was told $seen instead of $1"
}

# Its first start, then these orders: once, or again where its boot took longer than is allowed it.
told_rounds() { # NODE ORDERS...
  local node=$1 seen
  seen=$(orders "$node" | tr '\n' ',')
  [[ $seen =~ ^"$once"("$2")+$ ]] || fail "the BMC of $node was told $seen instead of $once, then $2"
}

# No BMC's order but those of its first start, and the machine is the one that this started.
untouched() {
  told "$1" "boot pxe,power 1,"
  [[ $(machine "$1") == "${first_machine[$1]}" ]] || fail "$1 was restarted"
}

tcpdump -U -i br0 -w "$capture" 'not tcp src port 4281 or tcp[tcpflags] & (tcp-syn|tcp-fin) != 0' 2>/dev/null &
dumping=$!
trap 'kill $dumping 2>/dev/null' EXIT

begun=$(now_ms)
ask set 'node:rack2n[4-7]' power=on agent=up >/dev/null
for node in "${nodes[@]}"; do wait_for "$node is up" is_up "$node" 1; done
printf '%d machines went from off to an agent in sync in %d s\n' ${#nodes[@]} $((($(now_ms) - begun) / 1000))
sleep 1 # for the capture to be written
declare -A first_machine
for node in "${nodes[@]}"; do
  check_order "$node"
  check_machine "$node"
  first_machine[$node]=$(machine "$node")
  untouched "$node"
  [[ $(entity "$node") == *'"enrolment":"window"'* ]] || fail "$node is not known to have enrolled at level window"
done
check_secrets

# What a machine wrote to its serial console came by its BMC, and can be read.
recorded() { [[ $(ask console -n 1000 "$1") == *"minos: "* ]]; }
wait_for "the console of rack1n1 is recorded" recorded rack1n1
echo "the console of rack1n1 is recorded"

# A boot URL is good for its machine only, and once.
url=$(grep -ao 'haptera.boot=[^ ]*' "$(console rack1n1)" | head -1 | cut -d= -f2)
for name in script invitation kernel; do
  status=$(curl -s -m 5 -o /dev/null -w '%{http_code}' "$url/$name")
  [[ $status == 404 ]] || fail "$url/$name was given to somebody else: $status"
done

# shellcheck source=examples/rack/faults.sh
. "$(dirname "$0")/faults.sh"
check_secrets
echo "all held"
