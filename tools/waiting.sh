# Sourced by the checks of examples: waits as long as something moves, and fails with what is known.
#
# The check sets `root`, the folder .haptera, and `wait_s`: how long nothing may move. It may
# set `client`, or `new` where another parent took over, and have `more_on_failure` print more,
# `more_picture` what else moves, and `while_waiting` see to what must hold all the time.

_haptera=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.venv/bin/haptera

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
