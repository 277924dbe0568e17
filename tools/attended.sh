# Sourced: a foreground command delays what ends a script, and so its clean-up, or outlives it.

# Runs a command to its end, and passes on to it what would end the script; returns its status.
attended() {
    local child status
    "$@" &
    child=$!
    trap 'kill -TERM "$child" 2>/dev/null || true' INT TERM HUP
    # A signal ends the wait, not the command.
    while kill -0 "$child" 2>/dev/null; do wait "$child" || true; done
    status=0
    wait "$child" || status=$?
    trap - INT TERM HUP
    return "$status"
}
