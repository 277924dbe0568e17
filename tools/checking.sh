# Sourced by the checks of examples: asks, looks from outside, waits as long as something moves, and
# fails with what is known.
#
# The check sets `root`, the folder .haptera, and `wait_s`: how long nothing may move. It may
# set `client`, or `new` where another parent took over, and have `more_on_failure` print more,
# `more_picture` what else moves, and `while_waiting` see to what must hold all the time.

_haptera=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.venv/bin/haptera

exec 3>&2 # told also where errors are not looked at
trap 'echo "check: line $LINENO failed: $BASH_COMMAND" >&3' ERR

haptera() { "$_haptera" --client "$root/client.json" "$@"; }

# api METHOD PATH [BODY]: the answer of the lab's parent
api() {
  local url token
  url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' "$root/client.json")
  token=$(sed 's/.*"token":"\([^"]*\)".*/\1/' "$root/client.json")
  curl -sf -m 35 -X "$1" "$url$2" ${3:+-d "$3"} -H @- <<<"Authorization: Bearer $token"
}

# duty NODE: what the queue says of it
duty() { api GET /v1/queue | grep -o "\"name\":\"$1\",\"duty\":\"[a-z]*\"" | sed 's/.*:"\(.*\)"/\1/'; }

address() { cat "$root/nodes/$1/address"; }

# Where replicas run now, by their pid files and the kernel: one NODE a line.
replicas() {
  local state pid
  for state in "$root"/nodes/*/run/replicas/*/state; do
    pid=$(sed -n 's/^service \([0-9]*\) .*/\1/p' "$state" 2>/dev/null) || continue
    if lives "$pid"; then
      state=${state#"$root/nodes/"}
      echo "${state%%/*}"
    fi
  done
}

# is_replaced FILE PID: another process has its pid in this file below .haptera, and lives
is_replaced() { local pid; pid=$(cat "$root/$1") && [[ $pid != "$2" ]] && lives "$pid"; }

# said WHAT SINCE_MS MORE
said() {
  local took=$(($(now_ms) - $2))
  printf '%-50s %2d.%02d s, %s\n' "$1:" $((took / 1000)) $((took % 1000 / 10)) "$3"
}

_defined() { declare -F "$1" >/dev/null; }
now_ms() { local t=${EPOCHREALTIME/[.,]/}; echo $((t / 1000)); }

# _asked VERB...: what the parent answers that is there now
_asked() {
  local file
  for file in "${new:-}" "${client:-$root/client.json}"; do
    [[ -s $file ]] && timeout 20 "$_haptera" --client "$file" "$@" && return
  done
  return 0
}

# Where all stands, without how long for: another picture means that something moves.
_picture() {
  {
    _asked status -o json | sed -E 's/[0-9][0-9.]* (ms|s|min|h|d)//g'
    ! _defined more_picture || more_picture
  } 2>/dev/null | cksum
}

# lives PID: whether it is a process that runs or sleeps
lives() { [[ -n $1 && -e /proc/$1 && $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) != [ZX] ]]; }

fail() {
  trap - ERR
  {
    echo "check: $*"
    _asked why 'condition in (stuck,waiting,acting)' || true
    ! _defined more_on_failure || more_on_failure || true
    echo "logs: $root/parent/*.log, $root/nodes/NODE/*.log, and run/log/ there"
    echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg) on $(nproc) processors"
  } >&2
  exit 1
}

# wait_for WHAT COMMAND...: until the command succeeds
wait_for() {
  local what=$1 began_ms moved_ms picture=none seen
  shift
  began_ms=$(now_ms) moved_ms=$began_ms
  until "$@" 2>/dev/null; do
    ! _defined while_waiting || while_waiting
    if (($(now_ms) - moved_ms > wait_s * 1000)); then
      seen=$(_picture)
      # What changes for ever comes to nothing either.
      if [[ $seen == "$picture" ]] || (($(now_ms) - began_ms > wait_s * 10000)); then
        fail "waited $((($(now_ms) - began_ms) / 1000)) s in vain: $what"
      fi
      # From now on it is seen more often whether anything moves.
      picture=$seen moved_ms=$(($(now_ms) - wait_s * 750))
    fi
    sleep 0.05
  done
}
