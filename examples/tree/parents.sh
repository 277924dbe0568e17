# Starts what is beside the root in this example: two parents below it, t1 and t2, three below
# these, m1 to m3, and its standby.
# Sourced by `run` and `check.sh`, with `directory` and `haptera` set.

tree=$directory/.haptera/tree
client=$directory/.haptera/client.json
octet() { sed 's/.*127\.\([0-9]*\)\.0\.1:.*/\1/' "$client"; }

# start NAME ARGUMENT...: in the background, its log and its pid by its name
start() {
  local name=$1
  shift
  "$haptera" --client "$client" "$@" >>"$tree/$name.log" 2>&1 &
  echo $! >"$tree/$name.pid"
}

# A parent below, by its name. t1 and t2 follow the root and, once that is gone, its standby; m1 to
# m3 follow one of these and, once it is gone, the other.
start_parent() {
  local t1=$tree/t1/.haptera/client.json t2=$tree/t2/.haptera/client.json above
  case $1 in
    t*) above=("$client" "$tree/standby.json") address=2${1#t} ;;
    m2) above=("$t2" "$t1") address=12 ;;
    m*) above=("$t1" "$t2") address=1${1#m} ;;
  esac
  start "$1" serve --dir "$tree/$1" --listen "127.$(octet).0.$address" --name "$1" --hello 1 \
    --above "${above[0]}" --above "${above[1]}"
}

start_standby() { start standby standby --dir "$tree/standby" --listen "127.$(octet).0.2" --hello 1; }

start_tree() {
  mkdir -p -m 700 "$tree"
  # The same token is good at the standby, once that is promoted.
  (umask 077 && sed 's/\(127\.[0-9]*\.0\.\)1:/\12:/' "$client" >"$tree/standby.json")
  for name in t1 t2; do mkdir -p -m 700 "$tree/$name" && start_parent "$name"; done
  until [[ -s $tree/t1/.haptera/client.json && -s $tree/t2/.haptera/client.json ]]; do sleep 0.1; done
  for name in m1 m2 m3; do mkdir -p -m 700 "$tree/$name" && start_parent "$name"; done
  mkdir -p -m 700 "$tree/standby" && start_standby
}

stop_tree() {
  local file pid pids=()
  for file in "$tree"/*.pid; do
    [[ -e $file ]] && pid=$(cat "$file") && kill "$pid" 2>/dev/null && pids+=("$pid")
    rm -f "$file"
  done
  # Not the children of this shell.
  for pid in "${pids[@]}"; do timeout 30 tail --pid="$pid" -s 0.1 -f /dev/null; done
}
