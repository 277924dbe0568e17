# Starts what is beside the root in this example: three parents below it, and its standby.
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

# A parent below, that follows the root and, once that is gone, its standby.
start_parent() {
  start "$1" serve --dir "$tree/$1" --listen "127.$(octet).0.1${1#m}" --name "$1" --hello 1 \
    --above "$client" --above "$tree/standby.json"
}

start_standby() { start standby standby --dir "$tree/standby" --listen "127.$(octet).0.2" --hello 1; }

start_tree() {
  mkdir -p -m 700 "$tree"
  # The same token is good at the standby, once that is promoted.
  (umask 077 && sed 's/\(127\.[0-9]*\.0\.\)1:/\12:/' "$client" >"$tree/standby.json")
  for name in m1 m2 m3; do mkdir -p -m 700 "$tree/$name" && start_parent "$name"; done
  mkdir -p -m 700 "$tree/standby" && start_standby
}

stop_tree() {
  for file in "$tree"/*.pid; do
    [[ -e $file ]] && kill "$(cat "$file")" 2>/dev/null
    rm -f "$file"
  done
  wait
}
